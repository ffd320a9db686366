// Quantized weights as stored in files to the layout of the device: AWQ, GPTQ of
// both versions with and without an order of its own, compressed-tensors integers
// and 8-bit floats all become one form (lane_layout.hpp). Host code, no device.
//
//   lane_image image = repack(matrix, dtype::float16, "blk.0.ffn_up");
//   upload image.codes, image.scales, …
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gpu/types.hpp"
#include "model/quantized/weight_matrix.hpp"

namespace octavo::gpu {

/// What a code means.
enum class lane_code {
  int4,  ///< (code - zero) * scale
  int8,
  e4m3,  ///< value * scale
};

constexpr int bits_of(lane_code code) {
  return code == lane_code::int4 ? 4 : 8;
}

/// A repacked weight in host memory. Every array is to be copied to the device as it is.
struct lane_image {
  lane_code code = lane_code::int4;
  dtype type = dtype::float16;  ///< of scales, and of activations
  std::int64_t outputs = 0;
  /// Inputs of the layer.
  std::int64_t source_inputs = 0;
  /// Inputs as the kernel counts them: of each group together, filled up with zeros.
  std::int64_t inputs = 0;
  /// Inputs that share a scale: `inputs`, or a multiple of 32.
  std::int64_t group = 0;
  std::vector<std::byte> codes;
  /// [inputs / group][outputs, padded to blocks], 16-bit; empty: column_scales only.
  std::vector<std::uint16_t> scales;
  /// The same shape; empty: the middle of the codes everywhere.
  std::vector<std::uint8_t> zeros;
  /// [inputs]: which input of the layer each is, -1 for filling; empty: itself.
  std::vector<std::int32_t> order;
  /// [1] or [outputs] factors of the results; empty: none.
  std::vector<float> column_scales;

  [[nodiscard]] std::size_t bytes() const {
    return codes.size() + 2 * scales.size() + zeros.size() + 4 * order.size() +
           4 * column_scales.size();
  }
};

/// Calls its second argument with 0 .. count - 1, in any order, from any threads.
using parallel_for =
    std::function<void(std::size_t count, const std::function<void(std::size_t)>& body)>;

/// One after another, on this thread.
void run_serially(std::size_t count, const std::function<void(std::size_t)>& body);

/// Repacks for kernels that compute in `type` (float16 or bfloat16). Throws
/// input_error naming `name` for forms without a kernel (GGUF blocks, plain floats)
/// and for scales outside of the type's range.
[[nodiscard]] lane_image repack(const model::weight_matrix& matrix, dtype type,
                                const std::string& name,
                                const parallel_for& parallel = run_serially);

}  // namespace octavo::gpu
