// A model behind the ring of actors: see local_engine.hpp.
#include "programs/octavo/local_engine.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>

#include <caf/atom.hpp>
#include <caf/send.hpp>

#include "actors/executor_actor.hpp"
#include "actors/wall_clock.hpp"
#include "core/error.hpp"
#include "cpu/cpu_executor.hpp"
#include "model/generation/kv_groups.hpp"
#include "model/kv_arithmetic.hpp"
#include "model/load_tokenizer.hpp"

namespace octavo {
namespace {

/// Tokens of a step where no flag says it: a chunk of prefill of so many keeps the
/// gaps between the tokens of others short and the kernels full.
constexpr std::int64_t usual_step_tokens = 512;
/// KV memory that is taken without being asked for.
constexpr std::int64_t usual_kv_bytes_max = std::int64_t{4} << 30;

std::size_t threads_of(std::int64_t asked) {
  return asked > 0 ? static_cast<std::size_t>(asked)
                   : std::max<std::size_t>(1, std::thread::hardware_concurrency());
}

class listening_sink : public actors::sink_actor::base {
 public:
  listening_sink(caf::actor_config& config, local_engine::listener hears)
      : actors::sink_actor::base(config), hears_(std::move(hears)) {}

  behavior_type make_behavior() override {
    return {
        [this](actors::events_atom, const actors::event_batch_ptr& events) { hears_(*events); }};
  }

 private:
  local_engine::listener hears_;
};

model::kv_dtype kv_dtype_of(const sim::engine_flags& flags, device_kind device) {
  const auto dtype = model::parse_kv_dtype(flags.kv_cache_dtype);
  const bool on_cpu = device == device_kind::cpu;
  const auto narrow = on_cpu ? model::kv_dtype::int8 : model::kv_dtype::fp8;
  if (dtype == model::kv_dtype::fp16 || dtype == narrow) return dtype;
  throw input_error(
      "--kv-cache-dtype: " + flags.kv_cache_dtype + " is not for " +
      (on_cpu ? "the CPU; auto (16 bits) and int8 are" : "GPUs; auto (16 bits) and fp8 are"));
}

gpu::dtype dtype_of(const std::string& name) {
  return name == "bfloat16" ? gpu::dtype::bfloat16 : gpu::dtype::float16;
}

// Flags that only a simulation, or only a GPU, can obey.
void refuse_what_is_ignored(const sim::engine_flags& flags, const machine_flags& machine) {
  if (flags.quantization != "auto") {
    throw input_error("--quantization: " + flags.quantization +
                      " is for simulations; a model runs as it is stored (auto)");
  }
  if (machine.device == "cpu" && machine.dtype != "auto") {
    throw input_error("--dtype: " + machine.dtype + " is for GPUs; the CPU has its own (auto)");
  }
  if (!(flags.gpu_memory_utilization > 0 && flags.gpu_memory_utilization <= 1)) {
    throw input_error("--gpu-memory-utilization: more than 0 and at most 1 is allowed");
  }
}

// Blocks for what all sequences may come to, one of them while it reads its prompt, within the
// memory that is given.
std::int64_t blocks_of(const local_model& local, const sim::engine_flags& flags,
                       const machine_flags& machine, const engine_config& engine) {
  const model::model_config& model = local.source->config();
  if (flags.num_gpu_blocks_override > 0) return flags.num_gpu_blocks_override;
  const auto ranks = static_cast<int>(flags.tensor_parallel_size);
  auto layout = model::make_kv_layout(model, kv_dtype_of(flags, local.device), ranks,
                                      cpu::kv_cache::block_size);
  if (local.device == device_kind::cpu) layout.block_bytes *= ranks;  // in one memory
  const bool given = machine.kv_cache_memory_bytes > 0;
  const std::int64_t memory = given ? machine.kv_cache_memory_bytes : usual_kv_bytes_max;
  const std::int64_t fits = model::kv_blocks(memory, 1, 0, 0, layout.block_bytes).blocks;
  if (given) return fits;
  const bool fitted = flags.max_model_len == "auto" || flags.max_model_len == "-1";
  const std::int64_t length =
      fitted ? model.max_positions
             : sim::parse_count(flags.max_model_len, "--max-model-len", "auto");
  if (length <= 0) return fits;
  const std::int64_t budget =
      flags.max_num_batched_tokens > 0 ? flags.max_num_batched_tokens : usual_step_tokens;
  const auto longest = static_cast<std::int32_t>(std::min<std::int64_t>(length, 1 << 30));
  const auto blocks_at = [&](std::int64_t most) {
    const auto chunk = static_cast<std::int32_t>(std::min<std::int64_t>(most, longest));
    return std::int64_t{blocks_peak(engine, token_count{longest}, token_count{chunk}).raw()};
  };
  return std::min(fits, (engine.max_num_seqs - 1) * blocks_at(1) + blocks_at(budget));
}

}  // namespace

void add_machine_flags(CLI::App& app, machine_flags& flags, bool with_device) {
  if (with_device) {
    app.add_option("--device", flags.device,
                   "auto, cpu, cuda, or cuda-emulated for tests with tiny models")
        ->check(CLI::IsMember({"auto", "cpu", "cuda", "cuda-emulated"}))
        ->capture_default_str();
  }
  app.add_option("--dtype", flags.dtype, "of activations on GPUs: auto, float16 or bfloat16")
      ->check(CLI::IsMember({"auto", "float16", "half", "bfloat16"}))
      ->capture_default_str();
  app.add_flag("--enforce-eager", flags.enforce_eager, "on GPUs: no CUDA graphs");
  app.add_flag("--batch-invariant", flags.batch_invariant,
               "on GPUs: a request's tokens do not depend on its company");
  app.add_option("--threads", flags.threads, "threads of a step; 0: one for each core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--kv-cache-memory-bytes", flags.kv_cache_memory_bytes,
                 "memory for KV; 0: what max-num-seqs sequences can need, at most 4 GiB, or what "
                 "GPUs have left")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 50))
      ->capture_default_str();
}

local_model load_local_model(const std::string& path, const sim::engine_flags& flags,
                             const machine_flags& machine) {
  const double start = actors::wall_seconds();
  if (!std::filesystem::exists(path)) {
    throw input_error(path + ": there is no such file; octavo model get smollm2 gets a small " +
                      "model and says where it is");
  }
  refuse_what_is_ignored(flags, machine);
  // Ranks' kernels wait for each other. Loading one at its first launch, as CUDA does unless
  // told before it is first called, may wait for all that run: among them those that wait for it.
  if (flags.tensor_parallel_size > 1) ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  auto source = std::make_shared<const model::checkpoint>(model::checkpoint::open(path));
  const model::tokenizer words = model::load_tokenizer(*source);
  auto ends = model::end_tokens_of(*source, words);
  local_model loaded{std::move(source), words,           resolve_device(machine.device),
                     nullptr,           std::move(ends), 0};
  if (loaded.device == device_kind::cpu) {
    cpu::thread_pool pool{threads_of(machine.threads)};
    loaded.weights = std::make_shared<const cpu::decoder_weights>(cpu::load_decoder(
        *loaded.source, pool, machine.hears_loading, static_cast<int>(flags.tensor_parallel_size)));
  }
  loaded.load_seconds = actors::wall_seconds() - start;
  return loaded;
}

engine_config local_engine_config(const local_model& model, const sim::engine_flags& flags,
                                  const machine_flags& machine) {
  engine_config engine = sim::engine_of(flags);
  // The actors' hops hide behind what the device computes; the CPU's kernels would wait
  // for the core that planning takes.
  if (flags.run_ahead < 0 && model.device != device_kind::cpu) engine.run_ahead = 1;
  if (engine.block_size.raw() != cpu::kv_cache::block_size) {
    throw input_error("--block-size: " + std::to_string(engine.block_size.raw()) +
                      " is not allowed; KV pages hold " +
                      std::to_string(cpu::kv_cache::block_size) + " tokens");
  }
  const model::model_config& config = model.source->config();
  engine.kv_groups = model::engine_kv_groups(config, cpu::kv_cache::block_size);
  const bool slides =
      std::ranges::any_of(engine.kv_groups, [](const kv_group& g) { return g.window.raw() > 0; });
  if (slides) engine.enable_prefix_caching = false;
  engine.num_blocks = block_count{
      sim::to_int32(blocks_of(model, flags, machine, engine), "--num-gpu-blocks-override", 1)};
  sim::set_model_len(flags, config.max_positions, engine);
  sim::set_step_budget(flags, usual_step_tokens, engine);
  validate(engine);
  return engine;
}

request_spec local_request(const local_model& model, const engine_config& config, std::uint64_t id,
                           std::vector<token_id> prompt, std::int32_t max_tokens,
                           const sampling_parameters& sampling) {
  if (prompt.empty()) throw input_error("prompt: comes to no token");
  const std::int64_t vocabulary = model.source->config().vocab_size;
  for (const token_id token : prompt) {
    if (token >= 0 && token < vocabulary) continue;
    throw input_error("prompt: token " + std::to_string(token) +
                      " is not in the vocabulary; 0 to " + std::to_string(vocabulary - 1) + " are");
  }
  request_spec spec;
  spec.id = request_id{id};
  spec.prompt_tokens = token_count{static_cast<std::int32_t>(prompt.size())};
  spec.max_tokens = token_count{max_tokens};
  const block_hasher hasher{{}};
  const auto width = static_cast<std::size_t>(config.block_size.raw());
  block_key key = hasher.root({});
  for (std::size_t at = 0; at + width <= prompt.size(); at += width) {
    key = hasher.chain(key, std::span{prompt}.subspan(at, width));
    spec.keys.push_back(key);
  }
  spec.prompt = std::make_shared<const std::vector<token_id>>(std::move(prompt));
  spec.sampling = std::make_shared<sampling_parameters>(sampling);
  return spec;
}

namespace {

std::unique_ptr<executor> make_cpu_executor(const local_model& model, const engine_config& config,
                                            const sim::engine_flags& flags,
                                            const machine_flags& machine,
                                            std::vector<token_id> end_tokens) {
  cpu::cpu_executor_options options;
  options.threads = threads_of(machine.threads);
  options.num_blocks = config.num_blocks.raw();
  options.tensor_parallel_size = static_cast<int>(flags.tensor_parallel_size);
  options.kv_dtype = kv_dtype_of(flags, model.device);
  options.end_tokens = std::move(end_tokens);
  options.seed = static_cast<std::uint64_t>(actors::wall_seconds() * 1e9);
  return std::make_unique<cpu::cpu_executor>(model.weights, model.words, std::move(options));
}

std::unique_ptr<executor> make_gpu_executor(const local_model& model, const engine_config& config,
                                            const sim::engine_flags& flags,
                                            const machine_flags& machine,
                                            std::vector<token_id> end_tokens) {
  gpu::device_executor_options options;
  options.devices.clear();
  const bool emulated = model.device == device_kind::cuda_emulated;
  for (int rank = 0; rank < flags.tensor_parallel_size; ++rank) {
    options.devices.push_back(emulated ? 0 : rank);
  }
  options.type = dtype_of(machine.dtype);
  const bool fp8 = kv_dtype_of(flags, model.device) == model::kv_dtype::fp8;
  options.kv_type = fp8 ? gpu::dtype::float8_e4m3 : options.type;
  const bool given = flags.num_gpu_blocks_override > 0 || machine.kv_cache_memory_bytes > 0;
  options.num_blocks = given || emulated ? config.num_blocks.raw() : 0;
  options.rehearsal_tokens_max = emulated ? 16 : 0;
  options.gpu_memory_utilization = flags.gpu_memory_utilization;
  options.max_num_batched_tokens = config.max_num_batched_tokens.raw();
  options.max_num_seqs = config.max_num_seqs;
  options.max_model_len = config.max_model_len.raw();
  options.batch_invariant = machine.batch_invariant;
  options.enforce_eager = machine.enforce_eager;
  options.run_ahead = config.run_ahead > 0;
  options.generation = {std::move(end_tokens),
                        static_cast<std::uint64_t>(actors::wall_seconds() * 1e9)};
  options.progress = machine.hears_loading;
  return backend_of(model.device).make_executor(*model.source, model.words, std::move(options));
}

}  // namespace

std::unique_ptr<executor> make_executor(const local_model& model, engine_config& config,
                                        const sim::engine_flags& flags,
                                        const machine_flags& machine,
                                        std::vector<token_id> end_tokens) {
  if (model.device == device_kind::cpu) {
    return make_cpu_executor(model, config, flags, machine, std::move(end_tokens));
  }
  auto made = make_gpu_executor(model, config, flags, machine, std::move(end_tokens));
  config.num_blocks = made->capabilities().num_blocks;
  return made;
}

caf::actor_system_config& with_few_threads(caf::actor_system_config& config) {
  config.set("scheduler.policy", caf::atom("sharing"));
  config.set("scheduler.max-threads", std::size_t{1});
  return config;
}

local_engine::local_engine(const local_model& model, engine_config config,
                           const sim::engine_flags& flags, const machine_flags& machine,
                           listener hears)
    : system_(with_few_threads(caf_config_)) {
  const double start = actors::wall_seconds();
  auto core = make_executor(model, config, flags, machine, model.end_tokens);
  load_seconds_ = actors::wall_seconds() - start;
  log_ = std::make_shared<decision_log>(to_json(config));
  log_->disable();
  const auto executor = system_.spawn<actors::executor_shell, caf::detached>(std::move(core));
  actors::scheduler_setup setup;
  setup.config = config;
  setup.clock = actors::engine_clock{system_.clock().now()};
  setup.log = log_;
  ring_ = actors::spawn_replica(system_, std::move(setup), executor);
  sink_ = system_.spawn<listening_sink>(std::move(hears));
}

local_engine::~local_engine() {
  actors::stop_replica(ring_);
  caf::anon_send_exit(sink_, caf::exit_reason::user_shutdown);
}

void local_engine::submit(std::vector<request_spec> requests) {
  auto batch = std::make_shared<std::vector<request_spec>>(std::move(requests));
  caf::anon_send(ring_.scheduler, actors::submit_atom::value, actors::submit_batch{batch}, sink_);
}

void local_engine::cancel(request_id id) {
  caf::anon_send(ring_.scheduler, actors::cancel_atom::value, id.raw());
}

}  // namespace octavo
