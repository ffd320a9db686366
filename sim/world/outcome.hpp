// What a simulation measured, request by request and over time.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "core/reason.hpp"
#include "core/siphash.hpp"
#include "core/units.hpp"
#include "sim/world/histogram.hpp"

namespace octavo::sim {

/// One request's life. Times are virtual, from the start of the run.
struct request_outcome {
  micros arrival{-1};  ///< -1: never arrived
  micros admitted{-1};
  micros first_token{-1};
  micros last_token{-1};
  token_count prompt_tokens;
  token_count output_tokens;
  token_count cached_tokens{-1};
  std::uint16_t preemptions = 0;
  std::uint8_t replica = 0;
  /// reason::routed while it has not ended.
  reason finish = reason::routed;

  [[nodiscard]] bool ended() const { return finish != reason::routed; }
  [[nodiscard]] bool completed() const {
    return finish >= reason::finished_eos && finish <= reason::finished_kv_exhausted;
  }
};

/// Gauges integrated over virtual time, over all replicas.
struct usage_integral {
  double seconds = 0;        ///< time covered, replicas added up
  double block_seconds = 0;  ///< held blocks
  double token_seconds = 0;  ///< distinct tokens in them
  block_count blocks_used_max;
};

struct simulation_outcome {
  std::vector<request_outcome> requests;
  histogram itl_us;
  usage_integral usage;
  /// Virtual time of the last input, and of the last arrival.
  micros end;
  micros last_arrival;
  /// Waiting and running, over all replicas, when the middle and the last
  /// request arrived, and how many had completed by then.
  std::int64_t waiting_at_middle = 0;
  std::int64_t waiting_at_last = 0;
  std::int64_t running_at_last = 0;
  std::int64_t completed_at_last = 0;
  std::int64_t submitted = 0;

  // Sums over replicas, from the engine itself.
  std::int64_t steps = 0;
  std::int64_t preemptions = 0;
  std::int64_t generated_tokens = 0;
  std::int64_t wasted_tokens = 0;
  std::int64_t query_tokens = 0;
  std::int64_t hit_tokens = 0;
  block_count blocks_total;
  /// Hash over the replicas' chains and the router's; zero where not kept.
  hash128 decision_log_hash;
  bool decision_log_kept = false;
};

}  // namespace octavo::sim
