// What a run comes to: percentiles, rates, use of memory, cost, and a verdict.
//
// Definitions: TTFT = first token − arrival. ITL = gaps between consecutive
// tokens of a request. TPOT = (last − first) / (tokens − 1). E2E = last −
// arrival. Goodput = requests that meet every objective, per second. All times
// count queueing. Only completed requests behind the warm-up count (of ITL, the
// gaps of all requests behind it).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/reason.hpp"
#include "sim/cli/prepare.hpp"
#include "sim/world/outcome.hpp"

namespace octavo::sim {

/// Seconds.
struct distribution {
  double mean = 0;
  double p50 = 0;
  double p90 = 0;
  double p95 = 0;
  double p99 = 0;
  double max = 0;
};

/// What held requests back most, by time.
enum class limiting_factor : std::uint8_t { none, kv_memory, seats, token_budget, static_batch };

struct request_counts {
  std::int64_t submitted = 0;
  std::int64_t completed = 0;
  std::int64_t rejected = 0;
  std::int64_t oversized = 0;  ///< of the rejected: longer than the model takes
  std::int64_t cancelled = 0;
  std::int64_t failed = 0;
};

struct run_summary {
  request_counts requests;
  bool stable = true;
  /// Why not, in words; empty where it is.
  std::string instability;
  distribution ttft_s;
  distribution tpot_s;
  distribution itl_s;
  distribution e2e_s;
  double duration_s = 0;  ///< first arrival to last token
  double requests_per_s = 0;
  double output_tokens_per_s = 0;
  double goodput_rps = 0;
  std::int64_t blocks_total = 0;  ///< over all replicas
  double kv_used_mean = 0;        ///< fraction
  double kv_used_max = 0;         ///< fraction, of the fullest replica
  double tokens_per_slot = 0;     ///< fraction
  std::int64_t query_tokens = 0;
  std::int64_t hit_tokens = 0;
  std::int64_t preemptions = 0;
  std::int64_t steps = 0;
  double usd_per_million_tokens = 0;  ///< output tokens; 0: price unknown
  limiting_factor limit = limiting_factor::none;
  /// The objectives at their percentile; true where none are set.
  bool meets_objectives = true;
  double ttft_at_objective_s = 0;
  double tpot_at_objective_s = 0;
  std::string decision_log_hash;  ///< empty where not kept
};

/// Waiting time of the queue's head by reason, gathered while a world runs.
class wait_observer final : public decision_observer {
 public:
  void on_record(const decision_record& record) override;
  [[nodiscard]] limiting_factor limit() const;

 private:
  micros since_;
  reason why_ = reason::admitted;
  std::array<std::int64_t, reason_count> waited_us_{};
};

[[nodiscard]] run_summary summarize(const prepared_run& run, const simulation_outcome& outcome,
                                    limiting_factor limit);

/// The value below which a share of the sorted values lies, interpolated.
[[nodiscard]] double percentile(const std::vector<double>& sorted, double percent);

}  // namespace octavo::sim
