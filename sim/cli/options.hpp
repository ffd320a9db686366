// The command line of `sim`, as typed: one field a flag, nothing resolved yet.
// Flags that mean the same as in `vllm serve` have the same name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/cli/engine_flags.hpp"

namespace octavo::sim {

struct sim_options : engine_flags {
  // What runs on what.
  std::string trace;
  std::string model;
  std::string gpu;
  std::string profile;
  std::string step_time;
  std::string host_time;
  std::int64_t replicas = 1;
  std::string router = "round_robin";

  // The traffic.
  double rate_scale = 1;
  std::int64_t requests = 0;
  std::int64_t concurrency = 0;
  std::int64_t warmup = 0;
  std::int64_t seed = 0;
  std::string assume_max_tokens = "context";

  // The question.
  std::string slo_ttft;
  std::string slo_tpot;
  double slo_percentile = 99;
  std::vector<std::string> vary;
  bool find_capacity = false;
  bool find_min_gpus = false;
  std::int64_t jobs = 0;
  std::string shard;

  // What comes out.
  std::string out_json;
  std::string out_csv;
  std::string decision_log;
  std::string chrome_trace;
  bool no_decision_log = false;
  bool timeline = false;
  std::string explain;
  bool quiet = false;

  // Other things to do instead of a run.
  std::string replay;
  bool verify = false;
  bool list_gpus = false;
  bool list_models = false;
  std::string kv_table;

  /// The line as typed, for reports that name the command to repeat.
  std::vector<std::string> arguments;
};

/// What parsing ended in: options, or a text that was asked for (help, version).
struct parsed_options {
  sim_options options;
  std::optional<std::string> text;
};

/// Parses arguments without the program's name. Of a flag given twice the last
/// counts. Throws input_error that names the flag and what is allowed.
[[nodiscard]] parsed_options parse_sim_options(const std::vector<std::string>& arguments);

}  // namespace octavo::sim
