// A model on this machine's CPU or its GPUs behind the ring of actors, for the commands
// that run one themselves.
//
//   local_model model = load_local_model("model.gguf", threads);
//   local_engine engine{model, flags, [](const actors::event_batch& events) { … }};
//   engine.submit(request_of(engine.config(), prompt, 128, sampling));
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include "actors/replica.hpp"
#include "core/executor.hpp"
#include "core/request.hpp"
#include "cpu/decoder/weights.hpp"
#include "model/container/checkpoint.hpp"
#include "model/tokenizer/tokenizer.hpp"
#include "programs/octavo/devices.hpp"
#include "sim/cli/engine_flags.hpp"
#include "sim/world/workload_source.hpp"

namespace octavo {

/// What only a real engine needs to know beside engine_flags.
struct machine_flags {
  /// "auto", "cpu", "cuda" or "cuda-emulated" (devices.hpp).
  std::string device = "auto";
  /// Of activations and plain weights on GPUs: "auto" (float16), "float16", "bfloat16".
  std::string dtype = "auto";
  /// On GPUs: bits of a request do not depend on its company. On the CPU they never do.
  bool batch_invariant = false;
  /// On GPUs: launch kernels one by one, never as graphs.
  bool enforce_eager = false;
  /// Threads of a step; 0: one for each core.
  std::int64_t threads = 0;
  /// Bytes of KV cache; 0: on the CPU min(4 GiB, max_num_seqs x max_model_len), on GPUs
  /// what gpu_memory_utilization leaves.
  std::int64_t kv_cache_memory_bytes = 0;
  /// Hears how many layers are loaded, of how many; on whichever thread loads. No flag.
  sim::progress_callback hears_loading = {};
};

/// Adds --threads, --kv-cache-memory-bytes and what chooses the device; --device itself
/// where the command has none of its own.
void add_machine_flags(CLI::App& app, machine_flags& flags, bool with_device = true);

/// A loaded model, shared by whoever runs it.
struct local_model {
  std::shared_ptr<const model::checkpoint> source;
  model::tokenizer words;
  device_kind device = device_kind::cpu;
  /// On the CPU; GPUs' executors load their own.
  std::shared_ptr<const cpu::decoder_weights> weights;
  /// Tokens at which generation ends, ascending.
  std::vector<token_id> end_tokens;
  double load_seconds = 0;
};

/// Opens a .gguf file or a Hugging Face directory, chooses the device, and for the CPU
/// repacks it for as many ranks as flags say, all in this process. Throws input_error and
/// infeasible_error as what it calls.
[[nodiscard]] local_model load_local_model(const std::string& path, const sim::engine_flags& flags,
                                           const machine_flags& machine);

/// The configuration that flags, model and memory come to, validated. Prefix caching
/// is off for models with sliding windows; GPUs run a step ahead unless flags say not.
[[nodiscard]] engine_config local_engine_config(const local_model& model,
                                                const sim::engine_flags& flags,
                                                const machine_flags& machine);

/// A request with the keys of its prompt's full blocks. Throws input_error for a
/// token outside the model's vocabulary and for a prompt of no token.
[[nodiscard]] request_spec local_request(const local_model& model, const engine_config& config,
                                         std::uint64_t id, std::vector<token_id> prompt,
                                         std::int32_t max_tokens,
                                         const sampling_parameters& sampling);

/// The executor of a model. On GPUs it loads the weights, and `config` gets the blocks
/// that fit where nothing says how many.
[[nodiscard]] std::unique_ptr<executor> make_executor(const local_model& model,
                                                      engine_config& config,
                                                      const sim::engine_flags& flags,
                                                      const machine_flags& machine,
                                                      std::vector<token_id> end_tokens);

/// One thread beside the executor's is enough for a ring of actors. It sleeps until it is
/// woken: threads that look round for work would take time from the kernels.
caf::actor_system_config& with_few_threads(caf::actor_system_config& config);

/// Runs until it is destroyed; requests that still live then are not told.
class local_engine {
 public:
  /// Hears tokens and ends, on an actor's thread.
  using listener = std::function<void(const actors::event_batch&)>;

  local_engine(const local_model& model, engine_config config, const sim::engine_flags& flags,
               const machine_flags& machine, listener hears);
  ~local_engine();
  local_engine(const local_engine&) = delete;
  local_engine& operator=(const local_engine&) = delete;

  /// Requests that arrive at one moment.
  void submit(std::vector<request_spec> requests);
  void cancel(request_id id);

  [[nodiscard]] const decision_log& log() const { return *log_; }
  /// What its executor took to be made; on GPUs this loads the weights.
  [[nodiscard]] double load_seconds() const { return load_seconds_; }

 private:
  std::shared_ptr<decision_log> log_;
  double load_seconds_ = 0;
  caf::actor_system_config caf_config_;
  caf::actor_system system_;
  actors::replica ring_;
  actors::sink_actor sink_;
};

}  // namespace octavo
