// Flags that describe an engine, the same for every program that has one. Those
// that mean the same as in `vllm serve` have the same name.
#pragma once

#include <cstdint>
#include <string>

#include <CLI/App.hpp>

#include "core/config.hpp"

namespace octavo::sim {

/// As typed: one field a flag, nothing resolved yet.
struct engine_flags {
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
  /// 0 or 1; below 0, not given: 0, and 1 on GPUs, which wait for nobody then.
  std::int64_t run_ahead = -1;
  std::int64_t watermark_blocks = 0;
  std::int64_t max_preemptions = 3;
  std::string static_max_wait = "100ms";
};

/// Adds the flags to a program's command line.
void add_engine_flags(CLI::App& app, engine_flags& flags);

/// The configuration, but for what depends on a model and on memory: KV blocks that
/// no flag gives (0 here), KV groups, max_model_len and max_num_batched_tokens. Throws input_error
/// that names the flag and what is allowed.
[[nodiscard]] engine_config engine_of(const engine_flags& flags);

/// Sets max_model_len: as given, or what the model was trained for
/// (`max_positions`; 0: not known) and the KV pool holds, whichever is less.
void set_model_len(const engine_flags& flags, std::int64_t max_positions, engine_config& engine);

/// Sets max_num_batched_tokens: as given, or `usual` and no fewer than sequences,
/// and without chunked prefill no fewer than a whole prompt.
void set_step_budget(const engine_flags& flags, std::int64_t usual, engine_config& engine);

/// Throws input_error naming `flag` where `value` is below `least` or too large.
[[nodiscard]] std::int32_t to_int32(std::int64_t value, const std::string& flag,
                                    std::int64_t least);

/// A number from 1. Throws input_error naming `flag`, and what else is allowed.
[[nodiscard]] std::int64_t parse_count(const std::string& text, const std::string& flag,
                                       const std::string& also_allowed);

/// "2s", "50ms", "100us" or a number of seconds, in microseconds. Throws
/// input_error naming `flag` where it is none of these or negative.
[[nodiscard]] double parse_duration_us(const std::string& text, const std::string& flag);

}  // namespace octavo::sim
