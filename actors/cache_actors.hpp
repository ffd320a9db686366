// The shells of the prefix cache and the block manager.
#pragma once

#include "actors/messages.hpp"
#include "actors/ordered_actor.hpp"
#include "core/block_manager.hpp"
#include "core/prefix_index.hpp"

namespace octavo::actors {

/// Answers what is known, and passes the question on to the block manager.
class prefix_cache_shell : public ordered_actor<prefix_cache_actor::base> {
 public:
  prefix_cache_shell(caf::actor_config& config, const engine_config& engine,
                     block_manager_actor blocks);

  const char* name() const override { return "prefix cache"; }
  behavior_type make_behavior() override;
  void on_exit() override { blocks_ = nullptr; }

 private:
  prefix_index core_;
  block_manager_actor blocks_;
};

/// Confirms matches; commits plans and passes them on to the executor. A plan
/// that only releases it answers itself.
class block_manager_shell : public ordered_actor<block_manager_actor::base> {
 public:
  block_manager_shell(caf::actor_config& config, const engine_config& engine,
                      executor_actor executor);

  const char* name() const override { return "block manager"; }
  behavior_type make_behavior() override;
  void on_exit() override;

 private:
  block_manager core_;
  executor_actor executor_;
  scheduler_actor scheduler_;
};

}  // namespace octavo::actors
