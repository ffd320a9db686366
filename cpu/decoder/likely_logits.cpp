// Which logits are worth computing again: see likely_logits.hpp.
#include "cpu/decoder/likely_logits.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "cpu/kernels/elementwise.hpp"

namespace octavo::cpu {

std::vector<std::uint32_t> likely_logits(std::span<const float> logits, float margin,
                                         std::size_t count_max) {
  std::vector<std::uint32_t> ids;
  if (logits.empty()) return ids;
  const float least = logits[argmax(logits.data(), logits.size())] - margin;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (logits[id] >= least) ids.push_back(static_cast<std::uint32_t>(id));
  }
  if (ids.size() <= count_max) return ids;
  const auto end = ids.begin() + static_cast<std::ptrdiff_t>(count_max);
  std::nth_element(ids.begin(), end, ids.end(), [&](std::uint32_t a, std::uint32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  ids.erase(end, ids.end());
  std::sort(ids.begin(), ids.end());
  return ids;
}

// Eight sums side by side, so that the compiler may use vectors of any width up to it.
float inner_product(std::span<const float> a, std::span<const float> b) {
  assert(a.size() == b.size());
  constexpr std::size_t lanes = 8;
  std::array<float, lanes> sums{};
  std::size_t i = 0;
  for (; i + lanes <= a.size(); i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (std::size_t lane = 0; i < a.size(); ++i, ++lane) sums[lane] += a[i] * b[i];
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

}  // namespace octavo::cpu
