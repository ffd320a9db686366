// What answers behind the gateway: a model on this machine, or a simulated machine
// in wall time; one replica, its actors, and what the gateway must know of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include "actors/messages.hpp"
#include "actors/replica.hpp"
#include "actors/wall_clock.hpp"
#include "core/executor.hpp"
#include "programs/octavo/local_engine.hpp"
#include "traces/log_file.hpp"
#include "web/gateway/hub.hpp"

namespace octavo {

/// What only a simulated machine needs to know, named as in `sim`.
struct simulated_flags {
  std::string gpu;
  std::string profile;
  std::string step_time;
  std::string host_time;
  /// A .gguf file or Hugging Face directory whose tokenizer counts and spells; without it
  /// every byte is a token.
  std::string tokenizer;
  /// "prose" or "clock": what the tokens say.
  std::string placeholder = "prose";
};

/// An executor with the configuration it is meant for.
struct prepared_engine {
  engine_config config;
  std::unique_ptr<executor> device;
  gateway::served_model model;
  /// One line for the log: what runs on what.
  std::string description;
  /// When the engine's time begins, in seconds of the wall clock.
  double start_s = actors::wall_seconds();
};

/// A model on this machine. Throws input_error and infeasible_error.
[[nodiscard]] prepared_engine prepare_local(const std::string& path, const sim::engine_flags& flags,
                                            const machine_flags& machine);
/// A machine that is priced by the cost model. Throws the same.
[[nodiscard]] prepared_engine prepare_simulated(const std::string& model,
                                                const sim::engine_flags& flags,
                                                const simulated_flags& simulated);

/// The ring and its front door, from spawn to a closed log.
class served_engine {
 public:
  /// Spawns what is `ready`. `observer` hears the scheduler's decisions on its thread and
  /// outlives this. Writes decisions to the file `decision_log` where it is not empty.
  /// Throws input_error.
  served_engine(prepared_engine& ready, decision_observer& observer,
                const std::string& decision_log);
  /// Stops the actors, then closes the log.
  ~served_engine();
  served_engine(const served_engine&) = delete;
  served_engine& operator=(const served_engine&) = delete;

  [[nodiscard]] caf::actor_system& system() { return *system_; }
  [[nodiscard]] const actors::engine_actor& door() const { return door_; }
  /// The actors without which nothing works.
  [[nodiscard]] std::vector<caf::actor_addr> parts() const;

 private:
  std::unique_ptr<traces::log_file_writer> log_file_;
  std::shared_ptr<decision_log> log_;
  caf::actor_system_config caf_config_;
  std::unique_ptr<caf::actor_system> system_;
  actors::replica ring_;
  actors::engine_actor door_;
};

}  // namespace octavo
