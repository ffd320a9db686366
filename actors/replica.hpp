// One ring of actors: scheduler, prefix cache, block manager, executor. The same
// function builds it for the real world and the simulated one; only the executor
// and the clock differ.
#pragma once

#include <caf/actor_system.hpp>

#include "actors/messages.hpp"
#include "actors/scheduler_actor.hpp"

namespace octavo::actors {

struct replica {
  executor_actor executor;
  block_manager_actor blocks;
  prefix_cache_actor prefixes;
  scheduler_actor scheduler;
};

/// Spawns the ring round an executor and connects it. Throws input_error where
/// the configuration is not allowed.
[[nodiscard]] replica spawn_replica(caf::actor_system& system, scheduler_setup setup,
                                    executor_actor executor);

/// Ends the ring's actors; requests that still live are not told.
void stop_replica(const replica& ring);

}  // namespace octavo::actors
