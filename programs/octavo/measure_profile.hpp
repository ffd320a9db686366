// Measures an executor over the shapes that the cost model prices by, step by step
// as the scheduler would send them, and makes a profile of it.
//
// What is measured, each the median of several steps after one that warms up:
//   dense            n sequences of one token each, nothing sampled, by n
//   per sequence     what sampling all n adds
//   attention decode  what a context of c tokens each adds, a layer, by (n, c)
//   attention prefill what attention adds to a chunk of t tokens behind c, a layer
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/executor.hpp"
#include "sim/cost/profile.hpp"

namespace octavo {

struct measure_options {
  /// Longest context to measure.
  std::int32_t context_max = 2048;
  /// Most sequences that decode at once.
  std::int32_t sequences_max = 32;
  /// Most tokens of a step.
  std::int32_t tokens_max = 512;
  /// Steps of each shape; the median counts.
  std::int32_t repeats = 5;
};

/// KV blocks that an executor needs to be measured.
[[nodiscard]] std::int32_t blocks_to_measure(const std::vector<kv_group>& groups,
                                             const measure_options& options);

/// Fills the tables of a profile of `layers` layers. `groups` are the KV groups of
/// the executor, which is fresh and has blocks_to_measure blocks. `seconds` is a
/// monotonic clock; `progress` hears the share done, 0 … 1.
[[nodiscard]] sim::profile measure_profile(executor& device, const std::vector<kv_group>& groups,
                                           std::int64_t layers, const measure_options& options,
                                           const std::function<double()>& seconds,
                                           const std::function<void(double)>& progress);

}  // namespace octavo
