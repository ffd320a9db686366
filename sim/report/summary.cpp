// Summing up a run: see summary.hpp.
#include "sim/report/summary.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace octavo::sim {
namespace {

constexpr std::int64_t least_queue = 10;
constexpr double queue_share = 0.05;
constexpr double queue_growth = 1.5;

double seconds(micros duration) {
  return static_cast<double>(duration.raw()) * 1e-6;
}

distribution distribution_of(std::vector<double>& values) {
  std::ranges::sort(values);
  distribution d;
  if (values.empty()) return d;
  d.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  d.p50 = percentile(values, 50);
  d.p90 = percentile(values, 90);
  d.p95 = percentile(values, 95);
  d.p99 = percentile(values, 99);
  d.max = values.back();
  return d;
}

distribution distribution_of(const histogram& values) {
  constexpr double s = 1e-6;
  return {values.mean() * s,         values.quantile(0.5) * s,
          values.quantile(0.9) * s,  values.quantile(0.95) * s,
          values.quantile(0.99) * s, static_cast<double>(values.max()) * s};
}

double tpot_s(const request_outcome& r) {
  return seconds(r.last_token - r.first_token) / (r.output_tokens.raw() - 1);
}

struct samples {
  std::vector<double> ttft;
  std::vector<double> tpot;
  std::vector<double> e2e;
  std::int64_t good = 0;
  std::int64_t output_tokens = 0;
  micros first_arrival{-1};
  micros last_token;
};

samples gather(const prepared_run& run, const simulation_outcome& outcome) {
  samples all;
  const service_objectives& slo = run.objectives;
  for (std::size_t i = run.simulation.work.warmup; i < outcome.requests.size(); ++i) {
    const request_outcome& r = outcome.requests[i];
    if (r.arrival >= micros{0} &&
        (all.first_arrival < micros{0} || r.arrival < all.first_arrival)) {
      all.first_arrival = r.arrival;
    }
    all.last_token = std::max(all.last_token, r.last_token);
    if (!r.completed()) continue;
    all.output_tokens += r.output_tokens.raw();
    const double ttft = seconds(r.first_token - r.arrival);
    all.ttft.push_back(ttft);
    all.e2e.push_back(seconds(r.last_token - r.arrival));
    bool good = slo.ttft_us <= 0 || ttft * 1e6 <= slo.ttft_us;
    if (r.output_tokens > token_count{1}) {
      all.tpot.push_back(tpot_s(r));
      good = good && (slo.tpot_us <= 0 || all.tpot.back() * 1e6 <= slo.tpot_us);
    }
    if (good) ++all.good;
  }
  return all;
}

request_counts count_requests(const prepared_run& run, const simulation_outcome& outcome) {
  request_counts c;
  for (std::size_t i = run.simulation.work.warmup; i < outcome.requests.size(); ++i) {
    const request_outcome& r = outcome.requests[i];
    ++c.submitted;
    if (r.completed()) {
      ++c.completed;
    } else if (is_rejection(r.finish)) {
      ++c.rejected;
      // No more GPUs would help what is longer than the model takes.
      const bool oversized = r.finish == reason::rejected_too_long && run.length_is_the_models;
      if (oversized) ++c.oversized;
    } else if (r.finish == reason::finished_cancelled) {
      ++c.cancelled;
    } else {
      ++c.failed;
    }
  }
  return c;
}

// Unstable: when the last request arrived, the queue was longer than all seats and
// more than twice what it was when the middle one came; or over 5 % of all that
// came were waiting, and it had grown by half since. Where less arrives than is
// served, a queue does not grow with time; where more does, it is twice as long at
// the end as in the middle.
std::string instability_of(const prepared_run& run, const simulation_outcome& o) {
  if (run.simulation.work.concurrency > 0) return {};
  char text[200];
  const auto waiting = static_cast<double>(o.waiting_at_last);
  const auto middle = static_cast<double>(o.waiting_at_middle);
  const double seats = static_cast<double>(run.simulation.engine.max_num_seqs) *
                       static_cast<double>(run.simulation.replicas);
  const bool beyond_seats = waiting > seats && waiting > 2 * middle;
  const bool many = o.waiting_at_last >= least_queue &&
                    waiting > queue_share * static_cast<double>(o.submitted) &&
                    waiting >= queue_growth * middle;
  if (!beyond_seats && !many) return {};
  std::snprintf(text, sizeof text,
                "the queue grew from %lld requests in the middle to %lld at the last arrival",
                static_cast<long long>(o.waiting_at_middle),
                static_cast<long long>(o.waiting_at_last));
  return text;
}

std::string hex(const hash128& hash) {
  char text[40];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.hi),
                static_cast<unsigned long long>(hash.lo));
  return text;
}

void add_memory(run_summary& s, const prepared_run& run, const simulation_outcome& o) {
  const auto pool = static_cast<double>(run.simulation.engine.num_blocks.raw());
  const auto block = static_cast<double>(run.simulation.engine.block_size.raw());
  s.blocks_total = o.blocks_total.raw();
  if (o.usage.seconds > 0) s.kv_used_mean = o.usage.block_seconds / (o.usage.seconds * pool);
  s.kv_used_max = o.usage.blocks_used_max.raw() / pool;
  if (o.usage.block_seconds > 0) {
    s.tokens_per_slot = o.usage.token_seconds / (o.usage.block_seconds * block);
  }
}

}  // namespace

double percentile(const std::vector<double>& sorted, double percent) {
  if (sorted.empty()) return 0;
  const double at = percent / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = at - static_cast<double>(below);
  return sorted[below] + part * (sorted[above] - sorted[below]);
}

void wait_observer::on_record(const decision_record& record) {
  waited_us_[static_cast<std::size_t>(why_)] += (record.now - since_).raw();
  since_ = record.now;
  why_ = reason::admitted;
  for (const held_record& held : record.held) {
    if (held.why != reason::chunked_to_budget) why_ = held.why;
  }
}

limiting_factor wait_observer::limit() const {
  const auto waited = [&](reason why) { return waited_us_[static_cast<std::size_t>(why)]; };
  const std::int64_t memory = waited(reason::no_free_blocks) + waited(reason::watermark_hold) +
                              waited(reason::preemption_hold);
  const std::int64_t seats = waited(reason::batch_full);
  const std::int64_t budget = waited(reason::no_budget);
  const std::int64_t batch =
      waited(reason::waiting_for_batch) + waited(reason::static_batch_running);
  const std::int64_t most = std::max({memory, seats, budget, batch});
  if (most == 0) return limiting_factor::none;
  if (most == memory) return limiting_factor::kv_memory;
  if (most == seats) return limiting_factor::seats;
  return most == budget ? limiting_factor::token_budget : limiting_factor::static_batch;
}

run_summary summarize(const prepared_run& run, const simulation_outcome& outcome,
                      limiting_factor limit) {
  run_summary s;
  samples all = gather(run, outcome);
  s.requests = count_requests(run, outcome);
  s.ttft_s = distribution_of(all.ttft);
  s.tpot_s = distribution_of(all.tpot);
  s.e2e_s = distribution_of(all.e2e);
  s.itl_s = distribution_of(outcome.itl_us);
  s.duration_s = std::max(0.0, seconds(all.last_token - all.first_arrival));
  if (s.duration_s > 0) {
    s.requests_per_s = static_cast<double>(s.requests.completed) / s.duration_s;
    s.output_tokens_per_s = static_cast<double>(all.output_tokens) / s.duration_s;
    s.goodput_rps = static_cast<double>(all.good) / s.duration_s;
  }
  if (all.output_tokens > 0) {
    s.usd_per_million_tokens = run.price_usd_per_hour * s.duration_s / 3600 /
                               (static_cast<double>(all.output_tokens) * 1e-6);
  }
  add_memory(s, run, outcome);
  s.query_tokens = outcome.query_tokens;
  s.hit_tokens = outcome.hit_tokens;
  s.preemptions = outcome.preemptions;
  s.steps = outcome.steps;
  s.limit = limit;
  s.instability = instability_of(run, outcome);
  s.stable = s.instability.empty();
  s.ttft_at_objective_s = percentile(all.ttft, run.objectives.percentile);
  s.tpot_at_objective_s = percentile(all.tpot, run.objectives.percentile);
  const service_objectives& slo = run.objectives;
  s.meets_objectives = s.requests.completed > 0 && s.requests.rejected == s.requests.oversized &&
                       s.requests.failed == 0 && s.stable &&
                       (slo.ttft_us <= 0 || s.ttft_at_objective_s * 1e6 <= slo.ttft_us) &&
                       (slo.tpot_us <= 0 || s.tpot_at_objective_s * 1e6 <= slo.tpot_us);
  if (outcome.decision_log_kept) s.decision_log_hash = hex(outcome.decision_log_hash);
  return s;
}

}  // namespace octavo::sim
