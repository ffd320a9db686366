// Flags of `sim`: see options.hpp.
#include "sim/cli/options.hpp"

#include <algorithm>
#include <cstdlib>

#include <CLI/CLI.hpp>

#include "core/error.hpp"

namespace octavo::sim {
namespace {

// Adds options of one help group.
class flag_group {
 public:
  flag_group(CLI::App& app, std::string title) : app_(app), title_(std::move(title)) {}

  template <class T>
  CLI::Option* add(const std::string& name, T& target, const std::string& help) {
    auto* option = app_.add_option(name, target, help)->group(title_)->capture_default_str();
    // An empty text would be taken for 0, or for no value at all.
    option->check([](const std::string& value) {
      return value.empty() ? std::string{"a value is needed"} : std::string{};
    });
    return option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
  CLI::Option* add_flag(const std::string& name, bool& target, const std::string& help) {
    return app_.add_flag(name, target, help)
        ->group(title_)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }

 private:
  CLI::App& app_;
  std::string title_;
};

void add_what_runs(CLI::App& app, sim_options& o) {
  flag_group g{app, "What runs on what"};
  g.add("--trace", o.trace,
        "request trace (octavo, Azure, Vidur, Mooncake, Bailian, BurstGPT, "
        "ShareGPT; .gz too)");
  g.add("--model", o.model, "a model of --list-models, or a Hugging Face config.json");
  g.add("--gpu", o.gpu, "a GPU of --list-gpus, or a JSON file of the same form");
  g.add("--profile", o.profile, "price steps from a measured profile (octavo.profile/1)");
  g.add("--step-time", o.step_time, "price every step the same, as 50ms");
  g.add("--host-time", o.host_time, "time to plan and launch a step, as 1ms");
  g.add("--replicas", o.replicas, "engines that run side by side")->check(CLI::Range(1, 64));
  g.add("--router", o.router, "round_robin, least_loaded or prefix_affinity");
}

void add_engine(CLI::App& app, sim_options& o) {
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

void add_policy(CLI::App& app, sim_options& o) {
  flag_group g{app, "Engine (Octavo's own choices)"};
  g.add("--policy", o.policy, "continuous, prefill_first, reserve or static");
  g.add("--kv-layout", o.kv_layout, "paged, or contiguous: max-model-len for each sequence");
  g.add("--run-ahead", o.run_ahead, "plan a step while one runs: 0 or 1")->check(CLI::Range(0, 1));
  g.add("--watermark", o.watermark_blocks, "blocks kept free when admitting");
  g.add("--max-preemptions", o.max_preemptions, "after so many, a request reserves its worst case");
  g.add("--static-max-wait", o.static_max_wait, "how long a static batch waits to fill");
}

void add_traffic(CLI::App& app, sim_options& o) {
  flag_group g{app, "Traffic"};
  g.add("--rate-scale", o.rate_scale, "arrivals come so many times as fast");
  g.add("--requests", o.requests, "only the first so many; 0: all");
  g.add("--concurrency", o.concurrency, "closed loop: always so many outstanding; 0: as traced");
  g.add("--warmup", o.warmup, "leave the first so many requests out of the statistics");
  g.add("--seed", o.seed, "written into the report; a replayed trace has no randomness");
  g.add("--assume-max-tokens", o.assume_max_tokens,
        "the clients' limit where the trace has none: context, exact (an oracle) or a number");
}

void add_question(CLI::App& app, sim_options& o) {
  flag_group g{app, "The question"};
  g.add("--slo-ttft", o.slo_ttft, "time to first token to meet, as 2s");
  g.add("--slo-tpot", o.slo_tpot, "time per output token to meet, as 50ms");
  g.add("--slo-percentile", o.slo_percentile, "share of requests that must meet them, in percent")
      ->check(CLI::Range(1.0, 100.0));
  app.add_option("--vary", o.vary, "FLAG=V1,V2,… runs each value; repeat for a grid")
      ->group("The question")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  g.add_flag("--find-capacity", o.find_capacity, "the highest rate that meets the SLOs");
  g.add_flag("--find-min-gpus", o.find_min_gpus, "the fewest replicas that meet the SLOs");
  g.add("--jobs", o.jobs, "runs at once; 0: one for each core")->check(CLI::Range(0, 1024));
  g.add("--shard", o.shard, "k/n: run only every n-th configuration, from the k-th (1 is first)");
}

void add_output(CLI::App& app, sim_options& o) {
  flag_group g{app, "Output"};
  g.add("--out-json", o.out_json, "write the report as JSON");
  g.add("--out-csv", o.out_csv, "write one line for each request, or for each configuration");
  g.add("--decision-log", o.decision_log, "write every decision, to replay");
  g.add("--chrome-trace", o.chrome_trace, "write a trace for Perfetto or chrome://tracing");
  g.add_flag("--no-decision-log", o.no_decision_log, "do not even hash the decisions");
  g.add_flag("--timeline", o.timeline, "draw static and continuous batching of a small trace");
  g.add("--explain", o.explain, "tell what happened to one request, and why");
  g.add_flag("--quiet,-q", o.quiet, "no progress, no report: files and exit code only");
}

void add_other(CLI::App& app, sim_options& o) {
  flag_group g{app, "Instead of a run"};
  g.add("--replay", o.replay, "read a decision log");
  g.add_flag("--verify", o.verify, "with --replay: decide again, and compare every byte");
  g.add_flag("--list-gpus", o.list_gpus, "known GPUs, with their sources");
  g.add_flag("--list-models", o.list_models, "known models");
  g.add("--kv-table", o.kv_table, "KV bytes of a model by context length");
}

}  // namespace

parsed_options parse_sim_options(const std::vector<std::string>& arguments) {
  parsed_options parsed;
  sim_options& o = parsed.options;
  CLI::App app{
      "Replays request traces through the real engine under a virtual clock.\n"
      "  sim --trace prod.csv --model llama-3.1-8b --gpu h100 --slo-ttft 2s",
      "sim"};
  app.get_formatter()->column_width(38);
  add_what_runs(app, o);
  add_engine(app, o);
  add_policy(app, o);
  add_traffic(app, o);
  add_question(app, o);
  add_output(app, o);
  add_other(app, o);
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    parsed.text = app.help();
  } catch (const CLI::ConversionError& problem) {
    throw input_error(std::string{problem.what()} +
                      "; a number is needed\nsim --help lists the flags.");
  } catch (const CLI::ParseError& problem) {
    throw input_error(std::string{problem.what()} + "\nsim --help lists the flags.");
  }
  o.arguments = arguments;
  return parsed;
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

}  // namespace octavo::sim
