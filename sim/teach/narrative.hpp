// A run's decisions in words, step by step: what came, who got in, what was
// computed, who had to wait and why. Runs of the same decision are one entry.
#pragma once

#include <string>
#include <vector>

#include "core/decision_record.hpp"
#include "sim/teach/recording.hpp"

namespace octavo::sim::teach {

/// A line of an entry: "waits", "5: it needs 3 KV blocks and 1 are free.".
struct remark {
  std::string verb;
  std::string text;
  std::string key;  ///< what must agree for two remarks to be one, numbers left out
};

struct narrative_entry {
  std::vector<std::uint64_t> steps;  ///< first and last; empty where nothing was computed
  micros from;
  std::vector<remark> events;  ///< arrivals, ends, preemptions, admissions
  std::vector<remark> state;   ///< what is computed and who waits
};

/// Requests are called by their number, at arrival by `names` too. Times count
/// from `origin`.
[[nodiscard]] std::vector<narrative_entry> narrate(const recording& run,
                                                   const std::vector<std::string>& names,
                                                   micros origin);

}  // namespace octavo::sim::teach
