// The shell of a real executor: see executor_actor.hpp.
#include "actors/executor_actor.hpp"

#include <utility>

#include <caf/send.hpp>

namespace octavo::actors {
namespace {

/// How long a step that was planned ahead may lie in the mailbox.
constexpr micros wait_at_once{50};

}  // namespace

executor_shell::executor_shell(caf::actor_config& config, std::unique_ptr<executor> core)
    : ordered_actor<waiting_executor_actor::base>(config), core_(std::move(core)) {}

executor_shell::behavior_type executor_shell::make_behavior() {
  return {
      [this](step_atom, const step_ptr& plan) {
        core_->submit(plan);
        send(this, wait_atom::value);
      },
      [this](connect_atom, const scheduler_actor& scheduler) { scheduler_ = scheduler; },
      [this](wait_atom) {
        if (core_->wait_for(wait_at_once)) {
          send(scheduler_, result_atom::value, core_->await());
        } else {
          send(this, wait_atom::value);
        }
      },
  };
}

}  // namespace octavo::actors
