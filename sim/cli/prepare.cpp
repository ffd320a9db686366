// From flags to a world: see prepare.hpp.
#include "sim/cli/prepare.hpp"

#include <algorithm>
#include <filesystem>

#include "core/error.hpp"
#include "model/kv_arithmetic.hpp"
#include "sim/catalogue/catalogue.hpp"
#include "sim/cost/constant.hpp"
#include "sim/cost/profile.hpp"

namespace octavo::sim {
namespace {

/// Tokens of a step where no flag says it, as in vLLM.
constexpr std::int64_t usual_budget = 2048;

workload_options work_of(const sim_options& o) {
  workload_options w;
  if (!(o.rate_scale > 0) || o.rate_scale > 1e6) {
    throw input_error("--rate-scale: " + std::to_string(o.rate_scale) +
                      " is not allowed; it must be above 0 and at most 1000000");
  }
  w.rate_scale = o.rate_scale;
  w.requests = static_cast<std::uint32_t>(to_int32(o.requests, "--requests", 0));
  w.concurrency = static_cast<std::uint32_t>(to_int32(o.concurrency, "--concurrency", 0));
  w.warmup = static_cast<std::uint32_t>(to_int32(o.warmup, "--warmup", 0));
  if (o.assume_max_tokens == "exact") {
    w.limit = assumed_limit::exact;
  } else if (o.assume_max_tokens != "context") {
    w.limit = assumed_limit::fixed;
    w.fixed_tokens = token_count{
        to_int32(parse_count(o.assume_max_tokens, "--assume-max-tokens", "context, exact"),
                 "--assume-max-tokens", 1)};
  }
  return w;
}

int run_gpus(const sim_options& o) {
  return static_cast<int>(o.tensor_parallel_size) * static_cast<int>(o.replicas);
}

// What the steps cost and how much KV memory there is.
struct machine {
  std::shared_ptr<const cost_model> cost;
  std::int64_t blocks = 0;
  std::int64_t max_positions = 0;
  std::vector<kv_group> groups{kv_group{}};
};

std::vector<kv_group> groups_of(const model::kv_layout& layout) {
  std::vector<kv_group> groups;
  for (const model::kv_group& g : layout.groups) {
    groups.push_back({token_count{static_cast<std::int32_t>(g.window)},
                      static_cast<std::int32_t>(g.pool_blocks)});
  }
  return groups;
}

// A duration that may not be zero.
double positive_duration_us(const std::string& text, const std::string& flag) {
  const double us = parse_duration_us(text, flag);
  if (us <= 0) throw input_error(flag + ": '" + text + "' is not allowed; it must be above 0");
  return us;
}

// A profile says what it was measured on: no catalogue GPU is needed beside it, but
// somebody must say how much KV memory there is.
machine machine_of_profile(const sim_options& o, const engine_config& engine, prepared_run& run) {
  const model::model_config config = find_model(o.model);
  profile measured = read_profile(o.profile);
  if (measured.layers != config.layers || measured.hidden_size != config.hidden_size) {
    throw input_error("--profile: " + o.profile + " was measured with " +
                      std::to_string(measured.layers) + " layers of width " +
                      std::to_string(measured.hidden_size) + ", but --model has " +
                      std::to_string(config.layers) + " of " + std::to_string(config.hidden_size));
  }
  if (o.num_gpu_blocks_override <= 0) {
    throw input_error("--num-gpu-blocks-override is needed where --profile is given without --gpu");
  }
  if (!o.host_time.empty()) measured.host_step_us = parse_duration_us(o.host_time, "--host-time");
  const model::kv_layout layout =
      model::make_kv_layout(config, measured.kv, measured.tp, engine.block_size.raw());
  machine m;
  m.blocks = o.num_gpu_blocks_override;
  m.max_positions = config.max_positions;
  m.groups = groups_of(layout);
  run.model_name = config.name.empty() ? o.model : config.name;
  run.gpu_name = measured.gpu;
  run.gpus = run_gpus(o);
  run.memory_arithmetic = std::to_string(m.blocks) + " KV blocks, as given";
  m.cost = std::make_shared<profile_cost>(std::move(measured));
  return m;
}

machine machine_without_model(const sim_options& o, prepared_run& run) {
  const bool half = o.model.empty() != o.gpu.empty();
  if (half || o.step_time.empty() || !o.profile.empty()) {
    throw input_error(
        "--model and --gpu are needed together (sim --list-models, sim --list-gpus), or "
        "--step-time without them");
  }
  if (o.num_gpu_blocks_override <= 0) {
    throw input_error("--num-gpu-blocks-override is needed where no --model and --gpu are given");
  }
  run.gpus = run_gpus(o);
  const double step_us = positive_duration_us(o.step_time, "--step-time");
  return {std::make_shared<constant_cost>(step_us), o.num_gpu_blocks_override, 0, {kv_group{}}};
}

// Reads a flag's value with a parser that does not know the flag.
template <class Parser>
auto of_flag(const std::string& flag, const std::string& value, Parser parse) {
  try {
    return parse(value);
  } catch (const input_error& problem) {
    throw input_error(flag + ": " + problem.what());
  }
}

// Flags that would be ignored beside others are refused.
void check_prices(const sim_options& o) {
  if (!o.step_time.empty() && !o.profile.empty()) {
    throw input_error("--profile: --step-time prices steps too; leave one of them out");
  }
  if (!o.step_time.empty() && !o.host_time.empty()) {
    throw input_error("--host-time: --step-time is the whole step; leave one of them out");
  }
  if (std::filesystem::is_directory(o.profile)) {
    throw input_error("--profile: " + o.profile + " is a folder; a file is needed");
  }
  if (!(o.gpu_memory_utilization > 0 && o.gpu_memory_utilization <= 1)) {
    throw input_error("--gpu-memory-utilization: " + std::to_string(o.gpu_memory_utilization) +
                      " is not allowed; it must be above 0 and at most 1");
  }
}

machine machine_of(const sim_options& o, const engine_config& engine, prepared_run& run) {
  check_prices(o);
  cost_options c;
  c.weights = of_flag("--quantization", o.quantization, model::parse_weight_format);
  c.kv = of_flag("--kv-cache-dtype", o.kv_cache_dtype, model::parse_kv_dtype);
  if (!o.model.empty() && o.gpu.empty() && !o.profile.empty()) {
    return machine_of_profile(o, engine, run);
  }
  if (o.model.empty() || o.gpu.empty()) return machine_without_model(o, run);
  c.config = find_model(o.model);
  c.gpu = find_gpu(o.gpu);
  c.tp = to_int32(o.tensor_parallel_size, "--tensor-parallel-size", 1);
  c.profile_path = o.profile;
  if (!o.step_time.empty()) c.step_time_us = positive_duration_us(o.step_time, "--step-time");
  if (!o.host_time.empty()) c.host_step_us = parse_duration_us(o.host_time, "--host-time");
  machine m;
  m.cost = make_cost_model(c);
  m.max_positions = c.config.max_positions;
  const model::kv_layout layout =
      model::make_kv_layout(c.config, c.kv, c.tp, engine.block_size.raw());
  m.groups = groups_of(layout);
  if (o.num_gpu_blocks_override > 0) {
    m.blocks = o.num_gpu_blocks_override;
    run.memory_arithmetic = std::to_string(m.blocks) + " KV blocks, as given";
  } else {
    const auto budget = model::kv_blocks(
        c.gpu.memory_bytes, o.gpu_memory_utilization,
        model::weight_bytes(c.config, c.weights, c.tp).total(),
        model::activation_peak_bytes(c.config, c.tp, engine.max_num_batched_tokens.raw(),
                                     engine.max_num_seqs),
        layout.block_bytes);
    m.blocks = budget.blocks;
    run.memory_arithmetic = budget.arithmetic;
  }
  run.model_name = c.config.name.empty() ? o.model : c.config.name;
  run.gpu_name = c.gpu.name;
  run.gpus = run_gpus(o);
  run.price_usd_per_hour = c.gpu.price_usd_per_hour * run.gpus;
  for (const std::string& note : c.config.notes) run.notes.push_back(note);
  return m;
}

// The length that the door checks: as given, or what model and memory allow.
void fit_length(const sim_options& o, const machine& m, engine_config& engine, prepared_run& run) {
  set_model_len(o, m.max_positions, engine);
  const std::int64_t length = engine.max_model_len.raw();
  run.length_is_the_models = m.max_positions > 0 && length >= m.max_positions;
  const bool fitted = o.max_model_len == "auto" || o.max_model_len == "-1";
  if (fitted && length < m.max_positions) {
    run.notes.push_back("max-model-len is " + std::to_string(length) +
                        " tokens: KV memory holds no more of the model's " +
                        std::to_string(m.max_positions) + ".");
  }
  if (!fitted && m.max_positions > 0 && length > m.max_positions) {
    run.notes.push_back("max-model-len is above the " + std::to_string(m.max_positions) +
                        " positions that the model was trained for.");
  }
}

service_objectives objectives_of(const sim_options& o) {
  service_objectives s;
  if (!o.slo_ttft.empty()) s.ttft_us = positive_duration_us(o.slo_ttft, "--slo-ttft");
  if (!o.slo_tpot.empty()) s.tpot_us = positive_duration_us(o.slo_tpot, "--slo-tpot");
  if (!(o.slo_percentile >= 1 && o.slo_percentile <= 100)) {
    throw input_error("--slo-percentile: " + std::to_string(o.slo_percentile) +
                      " is not allowed; 1 to 100 are");
  }
  s.percentile = o.slo_percentile;
  return s;
}

}  // namespace

prepared_run prepare_run(const sim_options& o, std::shared_ptr<const traces::trace> trace) {
  prepared_run run;
  engine_config engine = engine_of(o);
  engine.max_model_len = {};  // known once the blocks are
  set_step_budget(o, usual_budget, engine);
  const machine m = machine_of(o, engine, run);
  engine.kv_groups = m.groups;
  engine.num_blocks = block_count{to_int32(m.blocks, "--num-gpu-blocks-override", 1)};
  const bool slides =
      std::ranges::any_of(m.groups, [](const kv_group& g) { return g.window > token_count{0}; });
  if (slides && engine.enable_prefix_caching) {
    engine.enable_prefix_caching = false;
    run.notes.push_back("Prefix caching is off: the model has sliding-window layers.");
  }
  fit_length(o, m, engine, run);
  set_step_budget(o, usual_budget, engine);
  validate(engine);
  const workload_options work = work_of(o);
  const std::size_t all = trace->requests.size();
  const std::size_t count = work.requests > 0 ? std::min<std::size_t>(work.requests, all) : all;
  if (work.warmup >= count) {
    throw input_error("--warmup: " + std::to_string(work.warmup) + " leaves none of the " +
                      std::to_string(count) + " requests for the statistics");
  }
  run.simulation.trace = std::move(trace);
  run.simulation.engine = engine;
  run.simulation.cost = m.cost;
  run.simulation.work = work;
  run.simulation.replicas = static_cast<std::uint32_t>(o.replicas);
  run.simulation.router = parse_router(o.router);
  run.simulation.decision_log = !o.no_decision_log;
  run.objectives = objectives_of(o);
  run.seed = o.seed;
  run.assume_max_tokens = o.assume_max_tokens;
  if (run.simulation.work.limit == assumed_limit::exact) {
    run.notes.push_back(
        "max_tokens is taken to be exactly what is generated: an oracle that no client has.");
  }
  return run;
}

}  // namespace octavo::sim
