// Which logits are worth computing again without rounding: those of the likeliest
// tokens, which alone decide what is sampled. The head is the largest product of a
// small model, so its inputs are rounded to 8 bits first, and only its best few rows
// meet the inputs as floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace octavo::cpu {

/// Ids of the logits within `margin` of the largest, at most `count_max` of them: the
/// largest, of equal ones the first. In ascending order. Of NaNs there is none.
[[nodiscard]] std::vector<std::uint32_t> likely_logits(std::span<const float> logits, float margin,
                                                       std::size_t count_max);

/// The inner product, in one fixed order of additions.
[[nodiscard]] float inner_product(std::span<const float> a, std::span<const float> b);

}  // namespace octavo::cpu
