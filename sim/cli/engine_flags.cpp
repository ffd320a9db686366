// Flags of an engine: see engine_flags.hpp.
#include "sim/cli/engine_flags.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>

#include "core/error.hpp"
#include "sim/cli/flag_group.hpp"

namespace octavo::sim {
namespace {

void add_engine(CLI::App& app, engine_flags& o) {
  flag_group g{app, "Engine (named as in vllm serve)"};
  g.add("--tensor-parallel-size,--tp", o.tensor_parallel_size, "GPUs of one replica")
      ->check(CLI::Range(1, 1024));
  g.add("--max-model-len", o.max_model_len,
        "longest prompt plus output in tokens; auto: what the model takes and memory holds");
  g.add("--gpu-memory-utilization", o.gpu_memory_utilization, "share of GPU memory to use");
  g.add("--block-size", o.block_size, "tokens of a KV block");
  g.add("--num-gpu-blocks-override", o.num_gpu_blocks_override, "KV blocks; 0: what memory leaves");
  g.add("--max-num-seqs", o.max_num_seqs, "sequences that run at once");
  g.add("--max-num-batched-tokens", o.max_num_batched_tokens,
        "tokens of a step; 0: 2048, or the model's length without chunked prefill");
  g.add_flag("--enable-prefix-caching,!--no-enable-prefix-caching", o.enable_prefix_caching,
             "reuse the KV of equal prefixes (on)");
  g.add_flag("--enable-chunked-prefill,!--no-enable-chunked-prefill", o.enable_chunked_prefill,
             "cut long prompts into chunks (on)");
  g.add("--long-prefill-token-threshold", o.long_prefill_token_threshold,
        "tokens a prompt may take of one step; 0: all");
  g.add_flag("--scheduler-reserve-full-isl,!--no-scheduler-reserve-full-isl",
             o.scheduler_reserve_full_isl, "admit only where the whole prompt fits (on)");
  g.add("--quantization", o.quantization, "weights: auto, fp8, int8, or 4 bits: awq, gptq");
  g.add("--kv-cache-dtype", o.kv_cache_dtype, "auto, fp8, int8");
  g.add("--scheduling-policy", o.scheduling_policy, "fcfs, priority or shortest_first");
  g.add("--max-num-queued-reqs", o.max_num_queued_reqs, "refuse beyond so many waiting; 0: never");
  g.add("--max-num-queued-tokens", o.max_num_queued_tokens,
        "refuse beyond so many waiting prompt tokens; 0: never");
}

void add_policy(CLI::App& app, engine_flags& o) {
  flag_group g{app, "Engine (Octavo's own choices)"};
  g.add("--policy", o.policy, "continuous, prefill_first, reserve or static");
  g.add("--kv-layout", o.kv_layout, "paged, or contiguous: max-model-len for each sequence");
  g.add("--run-ahead", o.run_ahead,
        "plan a step while one runs: 0 or 1; auto: 1 on GPUs, emulated ones too, else 0")
      ->check(CLI::Range(0, 1))
      ->default_str("auto");
  g.add("--watermark", o.watermark_blocks, "blocks kept free when admitting");
  g.add("--max-preemptions", o.max_preemptions, "after so many, a request reserves its worst case");
  g.add("--static-max-wait", o.static_max_wait, "how long a static batch waits to fill");
}

}  // namespace

void add_engine_flags(CLI::App& app, engine_flags& flags) {
  add_engine(app, flags);
  add_policy(app, flags);
}

std::int32_t to_int32(std::int64_t value, const std::string& flag, std::int64_t least) {
  if (value < least || value > std::numeric_limits<std::int32_t>::max() / 2) {
    throw input_error(flag + ": " + std::to_string(value) + " is not allowed; " +
                      std::to_string(least) + " to " +
                      std::to_string(std::numeric_limits<std::int32_t>::max() / 2) + " are");
  }
  return static_cast<std::int32_t>(value);
}

std::int64_t parse_count(const std::string& text, const std::string& flag,
                         const std::string& also_allowed) {
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || value < 1) {
    throw input_error(flag + ": '" + text + "' is not allowed; " + also_allowed +
                      " or a number from 1 are");
  }
  return value;
}

double parse_duration_us(const std::string& text, const std::string& flag) {
  char* rest = nullptr;
  const double value = std::strtod(text.c_str(), &rest);
  const std::string unit = rest;
  double scale = 0;
  if (unit == "s" || unit.empty()) scale = 1e6;
  if (unit == "ms") scale = 1e3;
  if (unit == "us") scale = 1;
  if (unit == "min") scale = 60e6;
  if (rest == text.c_str() || scale == 0 || !(value >= 0) || value * scale > 1e15) {
    throw input_error(flag + ": '" + text +
                      "' is not a duration; write 2s, 50ms, 100us, 1min or seconds");
  }
  return value * scale;
}

engine_config engine_of(const engine_flags& o) {
  engine_config c;
  c.policy = parse_policy(o.policy);
  c.scheduling_policy = parse_ordering(o.scheduling_policy);
  c.layout = parse_kv_layout(o.kv_layout);
  c.block_size = token_count{to_int32(o.block_size, "--block-size", 1)};
  c.num_blocks = block_count{to_int32(o.num_gpu_blocks_override, "--num-gpu-blocks-override", 0)};
  c.max_num_seqs = to_int32(o.max_num_seqs, "--max-num-seqs", 1);
  c.max_num_samples = std::min(c.max_num_samples, c.max_num_seqs);
  c.enable_chunked_prefill = o.enable_chunked_prefill;
  c.enable_prefix_caching = o.enable_prefix_caching;
  c.long_prefill_token_threshold =
      token_count{to_int32(o.long_prefill_token_threshold, "--long-prefill-token-threshold", 0)};
  c.scheduler_reserve_full_isl = o.scheduler_reserve_full_isl;
  c.watermark = block_count{to_int32(o.watermark_blocks, "--watermark", 0)};
  c.max_preemptions = to_int32(o.max_preemptions, "--max-preemptions", 0);
  c.run_ahead = static_cast<std::int32_t>(std::max<std::int64_t>(o.run_ahead, 0));
  c.static_max_wait =
      micros{static_cast<std::int64_t>(parse_duration_us(o.static_max_wait, "--static-max-wait"))};
  c.max_num_queued_reqs = o.max_num_queued_reqs;
  c.max_num_queued_tokens = o.max_num_queued_tokens;
  return c;
}

void set_model_len(const engine_flags& o, std::int64_t max_positions, engine_config& engine) {
  if (o.max_model_len != "auto" && o.max_model_len != "-1") {
    engine.max_model_len = token_count{
        to_int32(parse_count(o.max_model_len, "--max-model-len", "auto"), "--max-model-len", 2)};
    return;
  }
  std::int64_t per_token = 0;
  for (const kv_group& g : engine.kv_groups) {
    if (g.window == token_count{0}) per_token += g.pool_blocks;
  }
  const std::int64_t pool_tokens =
      engine.num_blocks.raw() / std::max<std::int64_t>(per_token, 1) * engine.block_size.raw();
  const std::int64_t of_model = max_positions > 0 ? max_positions : pool_tokens;
  const std::int64_t fitted = std::min({of_model, pool_tokens, std::int64_t{1} << 29});
  engine.max_model_len = token_count{to_int32(fitted, "--max-model-len", 2)};
}

void set_step_budget(const engine_flags& o, std::int64_t usual, engine_config& engine) {
  std::int64_t budget = o.max_num_batched_tokens;
  if (budget == 0) {
    budget = std::max<std::int64_t>(usual, engine.max_num_seqs);
    if (!engine.enable_chunked_prefill) {
      budget = std::max<std::int64_t>(budget, engine.max_model_len.raw());
    }
  }
  engine.max_num_batched_tokens = token_count{to_int32(budget, "--max-num-batched-tokens", 1)};
}

}  // namespace octavo::sim
