// What answers behind the gateway: see served_engine.hpp.
#include "programs/octavo/served_engine.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include <caf/actor_cast.hpp>
#include <caf/atom.hpp>
#include <caf/send.hpp>

#include "actors/engine_actor.hpp"
#include "actors/executor_actor.hpp"
#include "core/error.hpp"
#include "model/load_tokenizer.hpp"
#include "model/tokenizer/byte_tokenizer.hpp"
#include "sim/cli/prepare.hpp"
#include "sim/world/paced_executor.hpp"

namespace octavo {
namespace {

/// KV blocks of a simulated machine of which only the time of a step is known.
constexpr std::int32_t usual_simulated_blocks = 32'768;

std::string name_of(const std::string& path) {
  const std::filesystem::path p{path};
  return p.extension() == ".gguf" ? p.stem().string() : p.filename().string();
}

void set_limits(gateway::served_model& served, const engine_config& config) {
  served.block_size = config.block_size;
  served.blocks_total = config.num_blocks;
  served.prefix_caching = config.enable_prefix_caching;
  gateway::served_model& s = served;
  s.limits.max_model_len = config.max_model_len;
  std::int64_t per_block = 0;
  for (const kv_group& g : config.kv_groups) {
    if (g.window == token_count{0}) per_block += g.pool_blocks;
  }
  // Layers that all slide hold what they need whatever the length.
  const std::int64_t tokens =
      per_block == 0 ? config.max_model_len.raw()
                     : std::int64_t{config.num_blocks.raw()} / per_block * config.block_size.raw();
  s.limits.kv_capacity =
      token_count{static_cast<std::int32_t>(std::min<std::int64_t>(tokens, 1 << 29))};
  s.limits.samples_max = config.max_num_samples;
  s.limits.queued_prompts_max = config.max_num_queued_reqs;
  s.limits.queued_tokens_max = config.max_num_queued_tokens;
  s.limits.allows_priority = config.scheduling_policy == ordering_kind::priority;
  s.limits.vocab_size = s.words->vocab_size();
  // Text that is not in the vocabulary may become fewer tokens than any piece tells.
  std::size_t piece_bytes = 64;
  for (token_id t = 0; t < s.limits.vocab_size; ++t) {
    piece_bytes = std::max(piece_bytes, s.words->piece(t).size());
  }
  s.limits.prompt_bytes_max = piece_bytes * static_cast<std::size_t>(config.max_model_len.raw());
}

actors::engine_clock clock_from(double wall_s) {
  using moment = actors::engine_clock::time_point;
  return actors::engine_clock{
      moment{std::chrono::duration_cast<moment::duration>(std::chrono::duration<double>{wall_s})}};
}

// A model whose template is missing or malformed serves texts all the same; whoever asks it
// for a chat is told why not.
void read_chat(const model::checkpoint& source, gateway::served_model& served) {
  try {
    const model::chat_source read = model::read_chat_source(source);
    if (read.templates.empty()) return;
    served.chat = std::make_shared<const model::chat_template>(read);
  } catch (const input_error& problem) {
    served.limits.chat_problem =
        std::string{"the model's chat template cannot be used: "} + problem.what();
  }
}

}  // namespace

prepared_engine prepare_local(const std::string& path, const sim::engine_flags& flags,
                              const machine_flags& machine) {
  const local_model model = load_local_model(path, flags, machine);
  const model::checkpoint& source = *model.source;
  prepared_engine ready;
  ready.config = local_engine_config(model, flags, machine);
  ready.model.words = std::make_shared<const model::tokenizer>(model.words);
  read_chat(source, ready.model);
  ready.model.limits.default_sampling = api::default_sampling(source.generation());
  std::vector<token_id> ends = model.end_tokens;
  if (ready.model.chat != nullptr) {
    for (const token_id end : model::end_of_turn_tokens(*ready.model.chat, model.words)) {
      if (std::ranges::find(ends, end) == ends.end()) ends.push_back(end);
    }
    std::ranges::sort(ends);
  }
  const double start = actors::wall_seconds();
  ready.device = make_executor(model, ready.config, flags, machine, std::move(ends));
  const double load_s = model.load_seconds + actors::wall_seconds() - start;
  ready.model.limits.served_model_names = {name_of(path)};
  set_limits(ready.model, ready.config);
  ready.description = name_of(path) + " on " + ready.device->capabilities().device_name +
                      ", loaded in " + std::to_string(static_cast<int>(load_s * 1e3)) + " ms";
  return ready;
}

prepared_engine prepare_simulated(const std::string& model, const sim::engine_flags& flags,
                                  const simulated_flags& simulated) {
  sim::sim_options o;
  static_cast<sim::engine_flags&>(o) = flags;
  o.model = model;
  o.gpu = simulated.gpu;
  o.profile = simulated.profile;
  o.step_time = simulated.step_time;
  o.host_time = simulated.host_time;
  // Steps of one price have no machine behind them that would say what fits.
  if (o.gpu.empty() && !o.step_time.empty() && o.num_gpu_blocks_override == 0) {
    o.num_gpu_blocks_override = usual_simulated_blocks;
  }
  auto trace = std::make_shared<traces::trace>();
  trace->requests.emplace_back();  // what is served comes from clients
  const sim::prepared_run run = sim::prepare_run(o, trace);
  prepared_engine ready;
  ready.config = run.simulation.engine;
  if (simulated.tokenizer.empty()) {
    ready.model.words = std::make_shared<const model::tokenizer>(model::byte_tokenizer());
  } else {
    const model::checkpoint source = model::checkpoint::open(simulated.tokenizer);
    ready.model.words = std::make_shared<const model::tokenizer>(model::load_tokenizer(source));
    read_chat(source, ready.model);
  }
  if (ready.model.chat == nullptr && ready.model.limits.chat_problem.empty()) {
    model::chat_source plain;
    plain.templates = {
        {"default", "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"}};
    ready.model.chat = std::make_shared<const model::chat_template>(plain);
  }
  executor_capabilities can;
  can.kv_groups = ready.config.kv_groups;
  can.num_blocks = ready.config.num_blocks;
  can.max_num_batched_tokens = ready.config.max_num_batched_tokens;
  can.device_name = "sim";
  const sim::pace pace{actors::wall_seconds,
                       [](double moment) {
                         const double left = moment - actors::wall_seconds();
                         if (left > 0) {
                           std::this_thread::sleep_for(std::chrono::duration<double>{left});
                         }
                       },
                       [start_s = ready.start_s](micros at) {
                         return start_s + static_cast<double>(at.raw()) * 1e-6;
                       }};
  const auto says = simulated.placeholder == "clock" ? sim::placeholder_kind::clock
                                                     : sim::placeholder_kind::prose;
  ready.device = std::make_unique<sim::paced_executor>(run.simulation.cost, can, ready.model.words,
                                                       pace, ready.config.run_ahead > 0, says);
  // Every answer says that no model was asked.
  ready.model.limits.served_model_names = {
      "simulated-" + (run.model_name.empty() ? "model" : name_of(run.model_name))};
  set_limits(ready.model, ready.config);
  ready.description = "a simulated machine, " + run.simulation.cost->source();
  return ready;
}

served_engine::served_engine(prepared_engine& ready, decision_observer& observer,
                             const std::string& log_path) {
  const engine_config& config = ready.config;
  log_ = std::make_shared<decision_log>(to_json(config));
  if (log_path.empty()) {
    log_->disable();
  } else {
    log_file_ = std::make_unique<traces::log_file_writer>(log_path);
    log_->set_sink(log_file_->replica(0, to_json(config)));
  }
  system_ = std::make_unique<caf::actor_system>(with_few_threads(caf_config_));
  const auto executor =
      system_->spawn<actors::executor_shell, caf::detached>(std::move(ready.device));
  actors::scheduler_setup setup;
  setup.config = config;
  setup.clock = clock_from(ready.start_s);
  setup.secret = ready.model.secret;
  setup.log = log_;
  setup.observers = {&observer};
  ring_ = actors::spawn_replica(*system_, std::move(setup), executor);
  door_ = system_->spawn<actors::engine_shell>(router_kind::round_robin,
                                               std::vector{ring_.scheduler}, nullptr);
}

std::vector<caf::actor_addr> served_engine::parts() const {
  const auto address = [](const auto& of) { return caf::actor_cast<caf::actor_addr>(of); };
  return {address(ring_.executor), address(ring_.blocks), address(ring_.prefixes),
          address(ring_.scheduler), address(door_)};
}

served_engine::~served_engine() {
  caf::anon_send_exit(door_, caf::exit_reason::user_shutdown);
  door_ = nullptr;
  actors::stop_replica(ring_);
  ring_ = {};
  system_->await_all_actors_done();
  system_.reset();
  if (log_file_ != nullptr) log_file_->close();
}

}  // namespace octavo
