// The shell of a real executor: it waits for the device, so it has a thread of
// its own (spawn it detached).
//
// While a step runs it looks into its mailbox now and then: a step that was planned
// ahead is prepared and started beside the one that runs.
#pragma once

#include <memory>

#include "actors/messages.hpp"
#include "actors/ordered_actor.hpp"
#include "core/executor.hpp"

namespace octavo::actors {

/// What the shell hears: of others, and of itself that a step is to be waited for.
using waiting_executor_actor = executor_actor::extend<caf::reacts_to<wait_atom>>;

class executor_shell : public ordered_actor<waiting_executor_actor::base> {
 public:
  executor_shell(caf::actor_config& config, std::unique_ptr<executor> core);

  const char* name() const override { return "executor"; }
  behavior_type make_behavior() override;
  void on_exit() override { scheduler_ = nullptr; }

 private:
  std::unique_ptr<executor> core_;
  scheduler_actor scheduler_;
};

}  // namespace octavo::actors
