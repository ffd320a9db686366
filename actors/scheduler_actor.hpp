// The scheduler's shell: mailbox -> core call -> messages. It stamps inputs,
// keeps them until a step boundary, and carries plans round the ring.
//
// Boundary rule: inputs are consumed only when a result came or no step is in
// flight; results first, then the rest in order of arrival.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "actors/engine_clock.hpp"
#include "actors/explain_journal.hpp"
#include "actors/messages.hpp"
#include "actors/ordered_actor.hpp"
#include "core/decision_log.hpp"
#include "core/scheduler.hpp"

namespace octavo::actors {

/// What a scheduler's shell needs beside its neighbours in the ring.
struct scheduler_setup {
  engine_config config;
  std::uint32_t replica = 0;
  engine_clock clock;
  /// Keys the blocks that generated tokens complete; the same that keyed the
  /// prompts' blocks.
  hash128 secret;
  /// Outlives the actor; disabled where nobody reads it.
  std::shared_ptr<decision_log> log;
  /// Observers outlive the actor too and run on its thread.
  std::vector<decision_observer*> observers;
  /// Keep what happened to this many requests for explain.
  std::size_t explained_requests = 1000;
};

class scheduler_shell : public ordered_actor<scheduler_actor::base> {
 public:
  scheduler_shell(caf::actor_config& config, scheduler_setup setup, prefix_cache_actor prefixes,
                  block_manager_actor blocks, executor_actor executor);

  const char* name() const override { return "scheduler"; }
  behavior_type make_behavior() override;
  void on_exit() override;

 private:
  struct pending_submit {
    submit_batch batch;
    sink_id sink;
    micros stamp;
  };
  struct pending_cancel {
    request_id id;
    micros stamp;
  };
  struct pending_drain {
    micros stamp;
  };
  struct pending_wake {
    micros stamp;
  };
  using arrived_result = std::pair<step_ptr, micros>;
  using pending_input = std::variant<pending_submit, pending_cancel, pending_drain, pending_wake>;

  [[nodiscard]] micros now();
  sink_id sink_number(const sink_actor& sink);
  void accept(pending_input input);
  void take_results_in_order();
  void pump();
  bool consume_at_boundary();
  void consume(pending_input& input);
  void end_plan(const match_batch* answer);
  void publish_events(bool after_result);
  void deliver(std::shared_ptr<event_batch> batch, sink_id sink);
  void arm_wake();
  void on_executor_gone();
  void give_up(const step_ptr& committed);
  void on_ring_broken();
  void fail_steps_in_flight();

  scheduler_setup setup_;
  scheduler core_;
  explain_journal journal_;
  prefix_cache_actor prefixes_;
  block_manager_actor blocks_;
  executor_actor executor_;
  bool executor_is_gone_ = false;
  /// The prefix cache or the block manager is gone.
  bool ring_is_broken_ = false;

  std::deque<pending_input> pending_;
  /// Results with their stamps: as they came, and those whose turn it is.
  std::vector<arrived_result> arrived_;
  std::deque<arrived_result> results_;
  std::deque<step_ptr> in_flight_;
  std::vector<sink_actor> sinks_;
  std::vector<step_ptr> spare_steps_;
  step_ptr plan_;
  match_ptr question_;
  bool asking_ = false;
  micros armed_wake_{-1};
};

}  // namespace octavo::actors
