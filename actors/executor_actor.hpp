// The shell of a real executor: it waits for the device, so it has a thread of
// its own (spawn it detached).
#pragma once

#include <memory>

#include "actors/messages.hpp"
#include "actors/ordered_actor.hpp"
#include "core/executor.hpp"

namespace octavo::actors {

class executor_shell : public ordered_actor<executor_actor::base> {
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
