// From stored elements to float, one run at a time: plain numbers and the block
// formats of GGUF files. Scalar code that follows the formats' definitions; fast
// kernels are tested against it.
//
//   dequantize(element_type::q4_k, row_bytes, std::span<float>(row));
#pragma once

#include <cstddef>
#include <span>

#include "model/quantized/element_type.hpp"

namespace octavo::model {

/// Can `dequantize` read it? F32, F16, BF16, F64, the integers up to 32 bits,
/// F8_E4M3, F8_E5M2, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K and Q6_K.
[[nodiscard]] bool is_readable(element_type type);

/// Converts out.size() elements, whole blocks that fill `bytes` exactly. Throws
/// input_error naming the type where it cannot be read; sizes are asserted.
void dequantize(element_type type, std::span<const std::byte> bytes, std::span<float> out);

}  // namespace octavo::model
