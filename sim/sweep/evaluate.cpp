// Answers about one configuration: see evaluate.hpp.
#include "sim/sweep/evaluate.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "sim/cli/run.hpp"

namespace octavo::sim {
namespace {

constexpr double largest_scale = 256;
constexpr double smallest_scale = 1.0 / 256;
constexpr double scale_precision = 0.01;
/// Twice the arrivals must serve at least this much more, or they load no further.
constexpr double least_gain = 1.05;
constexpr std::int64_t most_replicas = 64;

// One simulation; `best` keeps the last that met the objectives.
class prober {
 public:
  prober(sim_options options, const std::shared_ptr<const traces::trace>& trace)
      : options_(std::move(options)), trace_(trace) {}

  bool meets() {
    prepared_run run = prepare_run(options_, trace_);
    finished_run finished = execute_run(run);
    ++runs;
    const bool good = finished.summary.meets_objectives;
    if (good || !best.run) {
      best.run = std::move(run);
      best.summary = std::move(finished.summary);
    }
    return good;
  }

  sim_options& options() { return options_; }

  evaluation best;
  int runs = 0;

 private:
  sim_options options_;
  const std::shared_ptr<const traces::trace>& trace_;
};

evaluation find_capacity(const sim_options& options,
                         const std::shared_ptr<const traces::trace>& trace) {
  if (options.concurrency > 0) {
    throw input_error(
        "--find-capacity looks for a rate of arrivals, and with --concurrency there "
        "is none; leave one of them out");
  }
  if (traced_rate(*trace, static_cast<std::uint32_t>(options.requests)) == 0) {
    throw input_error("--find-capacity: all requests of " + options.trace +
                      " arrive at 0, so the trace has no rate to scale");
  }
  prober probe{options, trace};
  const auto good_at = [&](double scale) {
    probe.options().rate_scale = scale;
    return probe.meets();
  };
  const auto served = [&] { return probe.best.summary.requests_per_s; };
  double low = 0;
  double high = 0;
  double scale = options.rate_scale;
  if (good_at(scale)) {
    low = scale;
    double before = 0;
    // Sessions wait for their own answers: faster arrivals stop bringing more.
    while (high == 0 && low < largest_scale && served() > least_gain * before) {
      before = served();
      scale = low * 2;
      (good_at(scale) ? low : high) = scale;
    }
  } else {
    while (low == 0 && scale > smallest_scale) {
      high = scale;
      scale /= 2;
      if (good_at(scale)) low = scale;
    }
  }
  while (low > 0 && high > 0 && high / low > 1 + scale_precision) {
    const double middle = (low + high) / 2;
    (good_at(middle) ? low : high) = middle;
  }
  evaluation answer = std::move(probe.best);
  answer.runs = probe.runs;
  answer.capacity_scale = low;
  answer.capacity_is_bound = low > 0 && high == 0;
  // Of sessions only the first turns arrive by the trace's clock.
  const bool sessions = std::ranges::any_of(
      trace->requests, [](const traces::request& r) { return r.after != traces::none; });
  const double arriving = low * traced_rate(*trace, static_cast<std::uint32_t>(options.requests));
  answer.capacity_rps = sessions && low > 0 ? answer.summary.requests_per_s : arriving;
  return answer;
}

evaluation find_min_gpus(const sim_options& options,
                         const std::shared_ptr<const traces::trace>& trace) {
  prober probe{options, trace};
  const auto good_with = [&](std::int64_t replicas) {
    probe.options().replicas = replicas;
    return probe.meets();
  };
  std::int64_t bad = 0;
  std::int64_t good = 1;
  while (!good_with(good)) {
    bad = good;
    if (good == most_replicas) {
      good = 0;
      break;
    }
    good = std::min(good * 2, most_replicas);
  }
  while (good > bad + 1) {
    const std::int64_t middle = (bad + good) / 2;
    (good_with(middle) ? good : bad) = middle;
  }
  evaluation answer = std::move(probe.best);
  answer.runs = probe.runs;
  return answer;
}

}  // namespace

double traced_rate(const traces::trace& trace, std::uint32_t requests) {
  const std::size_t count =
      requests > 0 ? std::min<std::size_t>(requests, trace.requests.size()) : trace.requests.size();
  micros last;
  for (std::size_t i = 0; i < count; ++i) last = std::max(last, trace.requests[i].arrival);
  if (last <= micros{0}) return 0;
  return static_cast<double>(count) / (static_cast<double>(last.raw()) * 1e-6);
}

evaluation evaluate(const sim_options& options, const std::shared_ptr<const traces::trace>& trace) {
  try {
    if (options.find_capacity) return find_capacity(options, trace);
    if (options.find_min_gpus) return find_min_gpus(options, trace);
    prober probe{options, trace};
    probe.meets();
    probe.best.runs = probe.runs;
    return std::move(probe.best);
  } catch (const infeasible_error& problem) {
    evaluation answer;
    answer.problem = problem.what();
    return answer;
  }
}

}  // namespace octavo::sim
