// From flags to a world: see prepare.hpp.
#include "sim/cli/prepare.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>

#include "core/error.hpp"
#include "model/kv_arithmetic.hpp"
#include "sim/catalogue/catalogue.hpp"
#include "sim/cost/constant.hpp"

namespace octavo::sim {
namespace {

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

engine_config engine_of(const sim_options& o) {
  engine_config c;
  c.policy = parse_policy(o.policy);
  c.scheduling_policy = parse_ordering(o.scheduling_policy);
  c.layout = parse_kv_layout(o.kv_layout);
  c.block_size = token_count{to_int32(o.block_size, "--block-size", 1)};
  c.max_num_seqs = to_int32(o.max_num_seqs, "--max-num-seqs", 1);
  c.max_num_samples = std::min(c.max_num_samples, c.max_num_seqs);
  c.enable_chunked_prefill = o.enable_chunked_prefill;
  c.enable_prefix_caching = o.enable_prefix_caching;
  c.long_prefill_token_threshold =
      token_count{to_int32(o.long_prefill_token_threshold, "--long-prefill-token-threshold", 0)};
  c.scheduler_reserve_full_isl = o.scheduler_reserve_full_isl;
  c.watermark = block_count{to_int32(o.watermark_blocks, "--watermark", 0)};
  c.max_preemptions = to_int32(o.max_preemptions, "--max-preemptions", 0);
  c.run_ahead = static_cast<std::int32_t>(o.run_ahead);
  c.static_max_wait =
      micros{static_cast<std::int64_t>(parse_duration_us(o.static_max_wait, "--static-max-wait"))};
  c.max_num_queued_reqs = o.max_num_queued_reqs;
  c.max_num_queued_tokens = o.max_num_queued_tokens;
  return c;
}

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

// A duration that may not be zero.
double positive_duration_us(const std::string& text, const std::string& flag) {
  const double us = parse_duration_us(text, flag);
  if (us <= 0) throw input_error(flag + ": '" + text + "' is not allowed; it must be above 0");
  return us;
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
  m.groups.clear();
  for (const model::kv_group& g : layout.groups) {
    m.groups.push_back({token_count{static_cast<std::int32_t>(g.window)},
                        static_cast<std::int32_t>(g.pool_blocks)});
  }
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
  std::int64_t per_token = 0;
  for (const kv_group& g : engine.kv_groups) {
    if (g.window == token_count{0}) per_token += g.pool_blocks;
  }
  const std::int64_t pool_tokens =
      m.blocks / std::max<std::int64_t>(per_token, 1) * engine.block_size.raw();
  if (o.max_model_len == "auto" || o.max_model_len == "-1") {
    const std::int64_t of_model = m.max_positions > 0 ? m.max_positions : pool_tokens;
    const std::int64_t fitted = std::min({of_model, pool_tokens, std::int64_t{1} << 29});
    engine.max_model_len = token_count{to_int32(fitted, "--max-model-len", 2)};
    run.length_is_the_models = m.max_positions > 0 && fitted == m.max_positions;
    if (fitted < of_model) {
      run.notes.push_back("max-model-len is " + std::to_string(fitted) +
                          " tokens: KV memory holds no more of the model's " +
                          std::to_string(of_model) + ".");
    }
    return;
  }
  engine.max_model_len = token_count{
      to_int32(parse_count(o.max_model_len, "--max-model-len", "auto"), "--max-model-len", 2)};
  run.length_is_the_models = m.max_positions > 0 && engine.max_model_len.raw() >= m.max_positions;
  if (m.max_positions > 0 && engine.max_model_len.raw() > m.max_positions) {
    run.notes.push_back("max-model-len is above the " + std::to_string(m.max_positions) +
                        " positions that the model was trained for.");
  }
}

void set_budget(const sim_options& o, engine_config& engine, bool final) {
  std::int64_t budget = o.max_num_batched_tokens;
  if (budget == 0) {
    budget = std::max<std::int64_t>(2048, engine.max_num_seqs);
    if (final && !engine.enable_chunked_prefill) {
      budget = std::max<std::int64_t>(budget, engine.max_model_len.raw());
    }
  }
  engine.max_num_batched_tokens = token_count{to_int32(budget, "--max-num-batched-tokens", 1)};
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
  to_int32(o.num_gpu_blocks_override, "--num-gpu-blocks-override", 0);
  set_budget(o, engine, false);
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
  set_budget(o, engine, true);
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
