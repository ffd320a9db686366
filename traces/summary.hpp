// What a trace looks like: how much, how fast, how long, and how much of its
// prompts an endless prefix cache would already hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/trace.hpp"

namespace octavo::traces {

/// Lengths in tokens; percentiles by nearest rank.
struct length_summary {
  double mean = 0;
  std::int32_t min = 0;
  std::int32_t p50 = 0;
  std::int32_t p90 = 0;
  std::int32_t p99 = 0;
  std::int32_t max = 0;
};

struct trace_summary {
  std::string format;
  std::size_t requests = 0;
  /// Requests whose arrival the trace fixes; the others follow one that finishes.
  std::size_t timed_requests = 0;
  std::size_t follow_ups = 0;
  std::size_t sessions = 0;
  std::size_t tenants = 0;
  /// From the first to the last fixed arrival, and arrivals per second over it
  /// (0 where all arrive at one moment).
  double duration_s = 0;
  double rate_rps = 0;
  length_summary prompt;
  length_summary output;
  /// Blocks whose id came before, counted from the front of each prompt up to
  /// the first that did not; requests in file order.
  std::int32_t prefix_block = 0;
  std::size_t prefix_blocks = 0;
  std::size_t prefix_blocks_hit = 0;
  double prefix_hit_rate = 0;
  std::vector<std::string> notes;
};

[[nodiscard]] trace_summary summarize(const trace& t);

/// The summary as a table for people.
[[nodiscard]] std::string to_table(const trace_summary& s);
/// The summary as one JSON object with the names above.
[[nodiscard]] std::string to_json(const trace_summary& s);

}  // namespace octavo::traces
