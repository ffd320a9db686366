// JSON and CSV reports: see files.hpp.
#include "sim/report/files.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace octavo::sim {
namespace {

using nlohmann::ordered_json;

ordered_json json_of(const distribution& d) {
  return {{"mean", d.mean}, {"p50", d.p50}, {"p90", d.p90},
          {"p95", d.p95},   {"p99", d.p99}, {"max", d.max}};
}

ordered_json config_of(const prepared_run& run) {
  ordered_json config = ordered_json::parse(octavo::to_json(run.simulation.engine));
  const workload_options& work = run.simulation.work;
  config["model"] = run.model_name;
  config["gpu"] = run.gpu_name;
  config["gpus"] = run.gpus;
  config["replicas"] = run.simulation.replicas;
  config["router"] = std::string{to_string(run.simulation.router)};
  config["rate_scale"] = work.rate_scale;
  config["requests"] = work.requests;
  config["concurrency"] = work.concurrency;
  config["warmup"] = work.warmup;
  config["seed"] = run.seed;
  config["assume_max_tokens"] = run.assume_max_tokens;
  config["trace_format"] = run.simulation.trace->format;
  config["memory"] = run.memory_arithmetic;
  config["notes"] = run.notes;
  if (run.objectives.any()) {
    config["slo"] = {{"ttft_s", run.objectives.ttft_us * 1e-6},
                     {"tpot_s", run.objectives.tpot_us * 1e-6},
                     {"percentile", run.objectives.percentile}};
  }
  return config;
}

// A name of the trace, quoted where it would break the line (RFC 4180).
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string{"\"\""} : std::string{c};
  return quoted + '"';
}

}  // namespace

ordered_json to_json(const prepared_run& run, const run_summary& s, double wall_s) {
  ordered_json out;
  out["config"] = config_of(run);
  out["cost_source"] = run.simulation.cost->source();
  out["stable"] = s.stable;
  out["requests"] = {{"submitted", s.requests.submitted},
                     {"completed", s.requests.completed},
                     {"rejected", s.requests.rejected},
                     {"cancelled", s.requests.cancelled},
                     {"failed", s.requests.failed}};
  out["ttft_s"] = json_of(s.ttft_s);
  out["tpot_s"] = json_of(s.tpot_s);
  out["itl_s"] = json_of(s.itl_s);
  out["e2e_s"] = json_of(s.e2e_s);
  out["throughput"] = {{"requests_per_s", s.requests_per_s},
                       {"output_tokens_per_s", s.output_tokens_per_s}};
  out["goodput_rps"] = s.goodput_rps;
  out["kv"] = {{"blocks_total", s.blocks_total},
               {"used_mean", s.kv_used_mean},
               {"used_max", s.kv_used_max},
               {"tokens_per_slot_mean", s.tokens_per_slot}};
  out["prefix"] = {{"query_tokens", s.query_tokens}, {"hit_tokens", s.hit_tokens}};
  out["preemptions"] = s.preemptions;
  out["steps"] = s.steps;
  out["usd_per_million_output_tokens"] = s.usd_per_million_tokens;
  out["meets_slo"] = s.meets_objectives;
  out["wall_s"] = wall_s;
  out["decision_log_hash"] = nullptr;
  if (!s.decision_log_hash.empty()) out["decision_log_hash"] = s.decision_log_hash;
  return out;
}

void write_requests_csv(const prepared_run& run, const simulation_outcome& outcome,
                        std::ostream& out) {
  out << "id,arrival_s,prompt_tokens,output_tokens,cached_tokens,queue_s,ttft_s,tpot_s,e2e_s,"
         "preemptions,replica,finish\n";
  const auto seconds = [](micros later, micros earlier) {
    if (later < micros{0} || earlier < micros{0}) return std::string{};
    char text[32];
    std::snprintf(text, sizeof text, "%.6f", static_cast<double>((later - earlier).raw()) * 1e-6);
    return std::string{text};
  };
  for (std::size_t i = run.simulation.work.warmup; i < outcome.requests.size(); ++i) {
    const request_outcome& r = outcome.requests[i];
    std::string tpot;
    if (r.output_tokens > token_count{1} && r.first_token >= micros{0}) {
      char text[32];
      std::snprintf(text, sizeof text, "%.9f",
                    static_cast<double>((r.last_token - r.first_token).raw()) * 1e-6 /
                        (r.output_tokens.raw() - 1));
      tpot = text;
    }
    const std::string finish =
        r.ended() ? std::string{octavo::to_string(r.finish)} : std::string{"none"};
    out << csv_field(run.simulation.trace->name_of(static_cast<std::uint32_t>(i))) << ','
        << seconds(r.arrival, micros{0}) << ',' << r.prompt_tokens.raw() << ','
        << r.output_tokens.raw() << ',' << std::max(0, r.cached_tokens.raw()) << ','
        << seconds(r.admitted, r.arrival) << ',' << seconds(r.first_token, r.arrival) << ',' << tpot
        << ',' << seconds(r.last_token, r.arrival) << ',' << r.preemptions << ','
        << static_cast<int>(r.replica) << ',' << finish << '\n';
  }
}

void write_file(const std::string& path, const std::function<void(std::ostream&)>& fill) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (out) fill(out);
  out.flush();
  if (!out) throw input_error(path + ": cannot be written");
}

}  // namespace octavo::sim
