// The command line of `sim`, as typed: one field a flag, nothing resolved yet.
// Flags that mean the same as in `vllm serve` have the same name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace octavo::sim {

struct sim_options {
  // What runs on what.
  std::string trace;
  std::string model;
  std::string gpu;
  std::string profile;
  std::string step_time;
  std::string host_time;
  std::int64_t replicas = 1;
  std::string router = "round_robin";

  // The engine, as in vllm serve.
  std::int64_t tensor_parallel_size = 1;
  std::string max_model_len = "auto";
  double gpu_memory_utilization = 0.92;
  std::int64_t block_size = 16;
  std::int64_t num_gpu_blocks_override = 0;
  std::int64_t max_num_seqs = 256;
  std::int64_t max_num_batched_tokens = 0;
  bool enable_prefix_caching = true;
  bool enable_chunked_prefill = true;
  std::int64_t long_prefill_token_threshold = 0;
  bool scheduler_reserve_full_isl = true;
  std::string quantization = "auto";
  std::string kv_cache_dtype = "auto";
  std::string scheduling_policy = "fcfs";
  std::int64_t max_num_queued_reqs = 0;
  std::int64_t max_num_queued_tokens = 0;

  // The engine, where Octavo has more to choose.
  std::string policy = "continuous";
  std::string kv_layout = "paged";
  std::int64_t run_ahead = 0;
  std::int64_t watermark_blocks = 0;
  std::int64_t max_preemptions = 3;
  std::string static_max_wait = "100ms";

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

/// "2s", "50ms", "100us" or a number of seconds, in microseconds. Throws
/// input_error naming `flag` where it is none of these or negative.
[[nodiscard]] double parse_duration_us(const std::string& text, const std::string& flag);

}  // namespace octavo::sim
