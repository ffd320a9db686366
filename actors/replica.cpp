// Building a ring of actors: see replica.hpp.
#include "actors/replica.hpp"

#include <utility>

#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

#include "actors/cache_actors.hpp"

namespace octavo::actors {

replica spawn_replica(caf::actor_system& system, scheduler_setup setup, executor_actor executor) {
  validate(setup.config);
  replica ring;
  ring.executor = std::move(executor);
  ring.blocks = system.spawn<block_manager_shell>(setup.config, ring.executor);
  ring.prefixes = system.spawn<prefix_cache_shell>(setup.config, ring.blocks);
  ring.scheduler =
      system.spawn<scheduler_shell>(std::move(setup), ring.prefixes, ring.blocks, ring.executor);
  caf::anon_send(ring.blocks, connect_atom::value, ring.scheduler);
  caf::anon_send(ring.executor, connect_atom::value, ring.scheduler);
  return ring;
}

void stop_replica(const replica& ring) {
  caf::anon_send_exit(ring.scheduler, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(ring.prefixes, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(ring.blocks, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(ring.executor, caf::exit_reason::user_shutdown);
}

}  // namespace octavo::actors
