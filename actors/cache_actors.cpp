// The shells of the prefix cache and the block manager: see cache_actors.hpp.
#include "actors/cache_actors.hpp"

#include <utility>

#include <caf/send.hpp>

namespace octavo::actors {

prefix_cache_shell::prefix_cache_shell(caf::actor_config& config, const engine_config& engine,
                                       block_manager_actor blocks)
    : ordered_actor<prefix_cache_actor::base>(config),
      core_(engine.block_size),
      blocks_(std::move(blocks)) {}

prefix_cache_actor::behavior_type prefix_cache_shell::make_behavior() {
  return {
      [this](match_atom, const match_ptr& question) {
        core_.answer(*question);
        send(blocks_, match_atom::value, question);
      },
  };
}

block_manager_shell::block_manager_shell(caf::actor_config& config, const engine_config& engine,
                                         executor_actor executor)
    : ordered_actor<block_manager_actor::base>(config),
      core_(engine),
      executor_(std::move(executor)) {}

block_manager_actor::behavior_type block_manager_shell::make_behavior() {
  return {
      [this](match_atom, const match_ptr& question) {
        core_.confirm(*question);
        send(scheduler_, match_atom::value, question);
      },
      [this](commit_atom, const step_ptr& plan) {
        core_.commit(*plan);
        if (plan->releases_only()) {
          send(scheduler_, result_atom::value, plan);
        } else {
          send(executor_, step_atom::value, plan);
        }
      },
      [this](fail_atom, const step_ptr& committed) {
        // Answered here, behind its commit, so that it has all that a result needs.
        committed->result = {};
        committed->result.status = step_status::failed;
        send(scheduler_, result_atom::value, committed);
      },
      [this](connect_atom, const scheduler_actor& scheduler) { scheduler_ = scheduler; },
      [this](statistics_atom) { return core_.statistics(); },
  };
}

void block_manager_shell::on_exit() {
  executor_ = nullptr;
  scheduler_ = nullptr;
}

}  // namespace octavo::actors
