// Flags of `sim`: see options.hpp.
#include "sim/cli/options.hpp"

#include <CLI/CLI.hpp>

#include "core/error.hpp"
#include "sim/cli/flag_group.hpp"

namespace octavo::sim {
namespace {

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
  add_engine_flags(app, o);
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

}  // namespace octavo::sim
