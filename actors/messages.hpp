// The whole protocol of the ring, on one page.
//
//   client/source ─ submit, cancel, drain ─► engine ─► scheduler
//   scheduler     ─ match ─► prefix cache ─ match ─► block manager ─ match ─► scheduler
//   scheduler     ─ commit ─► block manager ─ step ─► executor ─ result ─► scheduler
//   scheduler     ─ fail ─► block manager ─ result ─► scheduler, once the executor is gone
//   scheduler     ─ events ─► sink (given at submit); through the engine where it routes
//
// Plain one-way messages with step ids inside; only statistics, explain and stop
// are requests. A step, a match and a batch of events are passed by pointer and
// belong to whoever holds the message: they never leave the process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/atom.hpp>

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "core/block_manager.hpp"
#include "core/scheduler.hpp"
#include "core/step.hpp"

namespace octavo::actors {

using submit_atom = caf::atom_constant<caf::atom("submit")>;
using cancel_atom = caf::atom_constant<caf::atom("cancel")>;
using drain_atom = caf::atom_constant<caf::atom("drain")>;
using wake_atom = caf::atom_constant<caf::atom("wake")>;
using match_atom = caf::atom_constant<caf::atom("match")>;
using commit_atom = caf::atom_constant<caf::atom("commit")>;
using fail_atom = caf::atom_constant<caf::atom("fail")>;
using step_atom = caf::atom_constant<caf::atom("step")>;
using wait_atom = caf::atom_constant<caf::atom("wait")>;
using result_atom = caf::atom_constant<caf::atom("result")>;
using events_atom = caf::atom_constant<caf::atom("events")>;
using connect_atom = caf::atom_constant<caf::atom("connect")>;
using statistics_atom = caf::atom_constant<caf::atom("statistics")>;
using explain_atom = caf::atom_constant<caf::atom("explain")>;

/// Requests that were submitted at the same moment.
using submit_batch = std::shared_ptr<std::vector<request_spec>>;

/// What one sink hears of one booking, with the state just after it.
struct event_batch {
  std::uint32_t replica = 0;
  micros now;
  std::vector<accepted_event> accepted;
  std::vector<token_event> tokens;
  /// What the token events' text_begin and text_size refer to.
  std::string text;
  /// What the token events' logprobs refer to.
  std::vector<token_logprobs> logprobs;
  std::vector<finish_event> finishes;
  /// True for the booking of a result, which the gauges describe.
  bool after_result = false;
  std::int64_t running = 0;
  std::int64_t waiting = 0;
  block_count blocks_used;
  std::int64_t kv_tokens = 0;
};
using event_batch_ptr = std::shared_ptr<const event_batch>;

/// All replicas' statistics, by replica.
using statistics_list = std::vector<scheduler_statistics>;

/// Hears tokens and ends.
using sink_actor = caf::typed_actor<caf::reacts_to<events_atom, event_batch_ptr>>;

using scheduler_actor =
    caf::typed_actor<caf::reacts_to<submit_atom, submit_batch, sink_actor>,
                     caf::reacts_to<cancel_atom, std::uint64_t>, caf::reacts_to<drain_atom>,
                     caf::reacts_to<wake_atom, std::int64_t>, caf::reacts_to<match_atom, match_ptr>,
                     caf::reacts_to<result_atom, step_ptr>,
                     caf::replies_to<statistics_atom>::with<scheduler_statistics>,
                     caf::replies_to<explain_atom, std::uint64_t>::with<std::string>>;

using executor_actor = caf::typed_actor<caf::reacts_to<step_atom, step_ptr>,
                                        caf::reacts_to<connect_atom, scheduler_actor>>;

using block_manager_actor =
    caf::typed_actor<caf::reacts_to<match_atom, match_ptr>, caf::reacts_to<commit_atom, step_ptr>,
                     caf::reacts_to<fail_atom, step_ptr>,
                     caf::reacts_to<connect_atom, scheduler_actor>,
                     caf::replies_to<statistics_atom>::with<cache_statistics>>;

using prefix_cache_actor = caf::typed_actor<caf::reacts_to<match_atom, match_ptr>>;

/// The front door.
using engine_actor =
    caf::typed_actor<caf::reacts_to<submit_atom, submit_batch, sink_actor>,
                     caf::reacts_to<cancel_atom, std::uint64_t>, caf::reacts_to<drain_atom>,
                     caf::reacts_to<events_atom, event_batch_ptr>,
                     caf::replies_to<statistics_atom>::with<statistics_list>,
                     caf::replies_to<explain_atom, std::uint64_t>::with<std::string>>;

}  // namespace octavo::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(octavo::step_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(octavo::match_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(octavo::cache_statistics)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(octavo::scheduler_statistics)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(octavo::actors::submit_batch)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(octavo::actors::event_batch_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(octavo::actors::statistics_list)
