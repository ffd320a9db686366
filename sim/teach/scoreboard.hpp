// What a run came to, in a few numbers, and how two runs compare in a sentence.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/teach/recording.hpp"
#include "sim/world/outcome.hpp"

namespace octavo::sim::teach {

struct score {
  std::string name;
  micros makespan;  ///< first arrival to last token
  micros ttft_mean;
  micros gap_max;    ///< between two tokens of one request
  micros wait_mean;  ///< arrival to admission
  double tokens_per_s = 0;
  token_sums tokens;
  std::int64_t steps = 0;
  std::int64_t preemptions = 0;
  std::int64_t completed = 0;
  /// What most of the time in the queue was waited for; routed: nobody waited.
  reason waited_for = reason::routed;
};

[[nodiscard]] score score_of(std::string name, const recording& run,
                             const simulation_outcome& outcome);

/// A table with a column per policy.
[[nodiscard]] std::vector<std::string> table_of(const std::vector<score>& scores);

/// One or two sentences: which ends sooner, why, and what it costs.
[[nodiscard]] std::string comparison(const score& base, const score& other);

}  // namespace octavo::sim::teach
