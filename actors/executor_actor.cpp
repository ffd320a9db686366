// The shell of a real executor: see executor_actor.hpp.
#include "actors/executor_actor.hpp"

#include <utility>

#include <caf/send.hpp>

namespace octavo::actors {

executor_shell::executor_shell(caf::actor_config& config, std::unique_ptr<executor> core)
    : ordered_actor<executor_actor::base>(config), core_(std::move(core)) {}

executor_actor::behavior_type executor_shell::make_behavior() {
  return {
      [this](step_atom, const step_ptr& plan) {
        core_->submit(plan);
        send(scheduler_, result_atom::value, core_->await());
      },
      [this](connect_atom, const scheduler_actor& scheduler) { scheduler_ = scheduler; },
  };
}

}  // namespace octavo::actors
