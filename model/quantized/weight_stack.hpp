// Weights of the same inputs one beneath another, as one weight of their form: layers
// that are multiplied with the same activations become one product.
//
//   if (auto stacked = stack_rows(parts)) packed_weights(stacked->matrix, "blk.0.attn_qkv");
#pragma once

#include <optional>
#include <span>

#include "model/quantized/weight_matrix.hpp"
#include "model/quantized/weight_slice.hpp"

namespace octavo::model {

/// The outputs of the first part, then those of the second, and so on, each weight with
/// exactly the value that it has in its part. Nothing where the parts do not fit: of
/// different forms, inputs, widths, groups or orders of inputs, where only some have zero
/// points, where a part ends within a word of zero points or a block of scales, and plain
/// numbers and GGUF blocks, whose rows need no stacking. Scales of whole rows always fit:
/// parts with one scale each become a matrix with one for each row.
[[nodiscard]] std::optional<weight_slice> stack_rows(std::span<const weight_matrix> parts);

}  // namespace octavo::model
