// The report for a person: see text.hpp.
#include "sim/report/text.hpp"

#include <cmath>
#include <cstdio>
#include <initializer_list>

namespace octavo::sim {
namespace {

template <class... Args>
std::string formatted(const char* form, Args... args) {
  char text[400];
  std::snprintf(text, sizeof text, form, args...);
  return text;
}

std::string percent(double fraction) {
  return formatted("%.1f %%", fraction * 100);
}

std::string fleet(const prepared_run& run) {
  if (run.gpus == 0 || run.gpu_name.empty()) {
    return std::to_string(run.simulation.replicas) + " replica" +
           (run.simulation.replicas == 1 ? "" : "s");
  }
  return std::to_string(run.gpus) + " x " + run.gpu_name;
}

std::string objective_text(const service_objectives& slo) {
  std::string text;
  const std::string share = formatted("p%g", slo.percentile);
  if (slo.ttft_us > 0) text += share + " TTFT " + format_seconds(slo.ttft_us * 1e-6);
  if (slo.tpot_us > 0) {
    text += (text.empty() ? "" : " and ") + share + " TPOT " + format_seconds(slo.tpot_us * 1e-6);
  }
  return text;
}

// Who was refused, what the queue waited for, how much of the objective is used.
std::string limit_text(const prepared_run& run, const run_summary& s) {
  std::string text;
  if (const std::int64_t lost = s.requests.rejected + s.requests.failed; lost > 0) {
    text = "; " + std::to_string(lost) + " of " + std::to_string(s.requests.submitted) +
           " requests were refused or failed";
  }
  if (s.limit != limiting_factor::none) {
    text += "; " + std::string{to_string(s.limit)} + " is what requests wait for";
  }
  const service_objectives& slo = run.objectives;
  if (slo.ttft_us > 0) {
    text += formatted("; TTFT is %s of %s allowed", format_seconds(s.ttft_at_objective_s).c_str(),
                      format_seconds(slo.ttft_us * 1e-6).c_str());
  }
  if (slo.tpot_us > 0) {
    text += formatted("; TPOT is %s of %s allowed", format_seconds(s.tpot_at_objective_s).c_str(),
                      format_seconds(slo.tpot_us * 1e-6).c_str());
  }
  return text;
}

void row(std::ostream& out, const char* name, const distribution& d) {
  out << formatted("  %-6s", name);
  for (const double value : {d.mean, d.p50, d.p90, d.p95, d.p99, d.max}) {
    out << formatted(" %10s", format_seconds(value).c_str());
  }
  out << '\n';
}

void print_latencies(const run_summary& s, std::ostream& out) {
  if (!s.stable) {
    out << "  Latencies are not shown: they would grow with the length of the trace.\n";
    return;
  }
  out << formatted("  %-6s %10s %10s %10s %10s %10s %10s\n", "", "mean", "p50", "p90", "p95", "p99",
                   "max");
  row(out, "TTFT", s.ttft_s);
  row(out, "TPOT", s.tpot_s);
  row(out, "ITL", s.itl_s);
  row(out, "E2E", s.e2e_s);
}

void print_numbers(const prepared_run& run, const run_summary& s, std::ostream& out) {
  out << formatted("  throughput    %.2f requests/s, %.0f output tokens/s", s.requests_per_s,
                   s.output_tokens_per_s);
  if (run.objectives.any()) out << formatted(", goodput %.2f requests/s", s.goodput_rps);
  out << formatted(
      "\n  requests      %lld completed, %lld rejected, %lld cancelled, %lld failed\n",
      static_cast<long long>(s.requests.completed), static_cast<long long>(s.requests.rejected),
      static_cast<long long>(s.requests.cancelled), static_cast<long long>(s.requests.failed));
  out << "  KV memory     " << percent(s.kv_used_mean) << " used on average, "
      << percent(s.kv_used_max) << " at most; " << percent(s.tokens_per_slot)
      << " of the held slots hold a token\n";
  if (run.simulation.engine.enable_prefix_caching) {
    const double share = s.query_tokens == 0 ? 0
                                             : static_cast<double>(s.hit_tokens) /
                                                   static_cast<double>(s.query_tokens);
    out << "  prefix cache  " << percent(share) << " of prompt tokens were cached\n";
  }
  out << formatted("  engine        %lld steps, %lld preemptions\n",
                   static_cast<long long>(s.steps), static_cast<long long>(s.preemptions));
  if (s.usd_per_million_tokens > 0) {
    out << formatted("  cost          %.2f USD per million output tokens (%.2f USD/h)\n",
                     s.usd_per_million_tokens, run.price_usd_per_hour);
  }
}

}  // namespace

std::string format_seconds(double seconds) {
  if (seconds < 1e-3) return formatted("%.0f us", seconds * 1e6);
  if (seconds < 0.0995) return formatted("%.1f ms", seconds * 1e3);
  if (seconds < 0.9995) return formatted("%.0f ms", seconds * 1e3);
  if (seconds < 99.5) return formatted("%.2f s", seconds);
  return formatted("%.0f s", seconds);
}

std::string_view to_string(limiting_factor limit) {
  switch (limit) {
    case limiting_factor::none:
      return "nothing";
    case limiting_factor::kv_memory:
      return "KV memory";
    case limiting_factor::seats:
      return "a seat in the batch (max-num-seqs)";
    case limiting_factor::token_budget:
      return "token budget (max-num-batched-tokens)";
    case limiting_factor::static_batch:
      return "the static batch";
  }
  return "nothing";
}

std::string answer_sentence(const prepared_run& run, const run_summary& s) {
  const std::string who = fleet(run);
  const bool one = run.gpus <= 1 && run.simulation.replicas == 1;
  if (s.requests.completed == 0) return who + ": not one request completed.";
  if (!s.stable) {
    return who + (one ? " is" : " are") + " overloaded at this rate: " + s.instability +
           (s.limit == limiting_factor::none
                ? "."
                : "; " + std::string{to_string(s.limit)} + " is what requests wait for.");
  }
  const std::string rate = formatted(" at %.2f req/s", s.requests_per_s);
  if (!run.objectives.any()) {
    return who + (one ? " serves" : " serve") + " this traffic" + rate + ": median TTFT " +
           format_seconds(s.ttft_s.p50) + ", p99 " + format_seconds(s.ttft_s.p99) +
           limit_text(run, s) + ".";
  }
  const char* verdict =
      s.meets_objectives ? (one ? " meets " : " meet ") : (one ? " misses " : " miss ");
  return who + verdict + objective_text(run.objectives) + rate + limit_text(run, s) + ".";
}

void print_report(const prepared_run& run, const run_summary& s, double wall_s, std::ostream& out) {
  out << answer_sentence(run, s) << "\n\n";
  print_latencies(s, out);
  out << '\n';
  print_numbers(run, s, out);
  out << "  priced by     " << run.simulation.cost->source() << '\n';
  if (!run.memory_arithmetic.empty()) out << "  KV blocks     " << run.memory_arithmetic << '\n';
  if (!s.decision_log_hash.empty()) out << "  decisions     " << s.decision_log_hash << '\n';
  for (const std::string& note : run.notes) out << "  note          " << note << '\n';
  for (const std::string& note : run.simulation.trace->notes) {
    out << "  trace         " << note << '\n';
  }
  out << formatted("  simulated     %.0f s of traffic in %.2f s\n", s.duration_s, wall_s);
}

}  // namespace octavo::sim
