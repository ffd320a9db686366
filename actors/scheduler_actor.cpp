// The scheduler's shell: see scheduler_actor.hpp.
#include "actors/scheduler_actor.hpp"

#include <algorithm>
#include <utility>

#include <caf/send.hpp>

namespace octavo::actors {

scheduler_shell::scheduler_shell(caf::actor_config& config, scheduler_setup setup,
                                 prefix_cache_actor prefixes, block_manager_actor blocks,
                                 executor_actor executor)
    : ordered_actor<scheduler_actor::base>(config),
      setup_(std::move(setup)),
      core_(setup_.config, *setup_.log, setup_.secret),
      journal_(setup_.explained_requests),
      prefixes_(std::move(prefixes)),
      blocks_(std::move(blocks)),
      executor_(std::move(executor)),
      question_(std::make_shared<match_batch>()) {
  for (decision_observer* observer : setup_.observers) core_.observe(*observer);
  if (setup_.explained_requests > 0) core_.observe(journal_);
  monitor(executor_);
  monitor(blocks_);
  monitor(prefixes_);
  set_down_handler([this](const caf::down_msg& down) {
    if (down.source == executor_.address()) {
      on_executor_gone();
    } else {
      on_ring_broken();
    }
  });
}

scheduler_actor::behavior_type scheduler_shell::make_behavior() {
  return {
      [this](submit_atom, const submit_batch& batch, const sink_actor& sink) {
        accept(pending_submit{batch, sink_number(sink), now()});
      },
      [this](cancel_atom, std::uint64_t id) {
        accept(pending_cancel{request_id{id}, now()});
      },
      [this](drain_atom) { accept(pending_drain{now()}); },
      [this](wake_atom, std::int64_t moment) {
        if (armed_wake_ == micros{moment}) accept(pending_wake{now()});
      },
      [this](match_atom, const match_ptr& answer) {
        if (!asking_) return;
        asking_ = false;
        end_plan(answer.get());
        pump();
      },
      [this](result_atom, const step_ptr& completed) {
        // Who was given up has no say any more: its steps fail, or did already.
        const bool late = executor_is_gone_ && current_sender() == executor_;
        if (late || ring_is_broken_) return;
        arrived_.emplace_back(completed, now());
        take_results_in_order();
        pump();
      },
      [this](statistics_atom) { return core_.statistics(); },
      [this](explain_atom, std::uint64_t id) { return journal_.explain(request_id{id}); },
  };
}

void scheduler_shell::on_exit() {
  // The ring's handles form a cycle.
  prefixes_ = nullptr;
  blocks_ = nullptr;
  executor_ = nullptr;
  sinks_.clear();
}

micros scheduler_shell::now() {
  return setup_.clock.at(clock().now());
}

sink_id scheduler_shell::sink_number(const sink_actor& sink) {
  const auto found = std::ranges::find(sinks_, sink);
  if (found != sinks_.end()) {
    return sink_id{static_cast<std::uint32_t>(found - sinks_.begin())};
  }
  sinks_.push_back(sink);
  return sink_id{static_cast<std::uint32_t>(sinks_.size() - 1)};
}

// The block manager's answer to a plan that only releases can overtake a step
// that still computes; it is booked in its turn.
void scheduler_shell::take_results_in_order() {
  for (std::size_t turn = results_.size(); turn < in_flight_.size(); ++turn) {
    const auto next = std::ranges::find(arrived_, in_flight_[turn], &arrived_result::first);
    if (next == arrived_.end()) return;
    results_.push_back(std::move(*next));
    arrived_.erase(next);
  }
}

void scheduler_shell::accept(pending_input input) {
  pending_.push_back(std::move(input));
  pump();
}

void scheduler_shell::pump() {
  while (!asking_) {
    const bool consumed = consume_at_boundary();
    if (!core_.wants_plan()) {
      if (consumed) continue;
      break;
    }
    if (spare_steps_.empty()) {
      plan_ = std::make_shared<step>();
    } else {
      plan_ = std::move(spare_steps_.back());
      spare_steps_.pop_back();
    }
    question_->clear();
    const bool asks = core_.begin_plan(*plan_, *question_);
    if (asks && !ring_is_broken_) {
      asking_ = true;
      send(prefixes_, match_atom::value, question_);
      return;
    }
    end_plan(nullptr);
  }
  arm_wake();
}

bool scheduler_shell::consume_at_boundary() {
  const bool result_came = !results_.empty();
  if (!result_came && (core_.steps_in_flight() > 0 || pending_.empty())) return false;
  for (auto& [completed, stamp] : results_) {
    core_.on_result(*completed, stamp);
    in_flight_.pop_front();
    completed->clear();
    spare_steps_.push_back(std::move(completed));
  }
  results_.clear();
  for (pending_input& input : pending_) consume(input);
  pending_.clear();
  publish_events(result_came);
  return true;
}

void scheduler_shell::consume(pending_input& input) {
  if (auto* submit = std::get_if<pending_submit>(&input)) {
    for (request_spec& spec : *submit->batch) {
      spec.sink = submit->sink;
      core_.on_submit(std::move(spec), submit->stamp);
    }
  } else if (const auto* cancel = std::get_if<pending_cancel>(&input)) {
    core_.on_cancel(cancel->id, cancel->stamp);
  } else if (const auto* drain = std::get_if<pending_drain>(&input)) {
    core_.on_drain(drain->stamp);
  } else if (const auto* wake = std::get_if<pending_wake>(&input)) {
    armed_wake_ = micros{-1};
    core_.on_wake(wake->stamp);
  }
}

void scheduler_shell::end_plan(const match_batch* answer) {
  if (core_.finish_plan(*plan_, answer)) {
    in_flight_.push_back(plan_);
    if (ring_is_broken_) {
      fail_steps_in_flight();
    } else {
      send(blocks_, commit_atom::value, plan_);
      if (executor_is_gone_) give_up(plan_);
    }
    plan_ = nullptr;
  } else {
    plan_->clear();
    spare_steps_.push_back(std::move(plan_));
  }
  if (!core_.events().empty()) publish_events(false);
}

void scheduler_shell::publish_events(bool after_result) {
  step_events& events = core_.events();
  if (events.empty() && !after_result) return;
  auto batch = std::make_shared<event_batch>();
  batch->replica = setup_.replica;
  batch->now = core_.now();
  batch->after_result = after_result;
  const scheduler_statistics state = core_.statistics();
  batch->running = state.running;
  batch->waiting = state.waiting;
  batch->blocks_used = state.blocks_used;
  batch->kv_tokens = state.kv_tokens;
  batch->accepted = std::move(events.accepted);
  batch->tokens = std::move(events.tokens);
  batch->text = std::move(events.text);
  batch->logprobs = std::move(events.logprobs);
  batch->finishes = std::move(events.finishes);
  events.accepted = {};
  events.tokens = {};
  events.text = {};
  events.logprobs = {};
  events.finishes = {};
  events.tokens.reserve(batch->tokens.size() + 8);
  if (sinks_.size() == 1) {
    deliver(std::move(batch), sink_id{0});
    return;
  }
  for (std::uint32_t number = 0; number < sinks_.size(); ++number) {
    auto part = std::make_shared<event_batch>(*batch);
    std::erase_if(part->accepted, [&](const auto& e) { return e.sink != sink_id{number}; });
    std::erase_if(part->tokens, [&](const auto& e) { return e.sink != sink_id{number}; });
    std::erase_if(part->finishes, [&](const auto& e) { return e.sink != sink_id{number}; });
    const bool news = !part->accepted.empty() || !part->tokens.empty() || !part->finishes.empty();
    if (news) deliver(std::move(part), sink_id{number});
  }
}

void scheduler_shell::deliver(std::shared_ptr<event_batch> batch, sink_id sink) {
  send(sinks_[sink.raw()], events_atom::value, event_batch_ptr{std::move(batch)});
}

void scheduler_shell::arm_wake() {
  const auto wanted = core_.wake();
  if (!wanted) armed_wake_ = micros{-1};  // a timer under way finds that it is not waited for
  if (!wanted || *wanted == armed_wake_) return;
  armed_wake_ = *wanted;
  const micros wait = std::max(micros{0}, *wanted - now());
  delayed_send(this, std::chrono::microseconds{wait.raw()}, wake_atom::value, wanted->raw());
}

// The ring goes on without its last member: the block manager answers in its
// place, for the steps in flight and for every later one as soon as it is
// committed. Each request ends with a reason, none waits for what cannot come,
// and the log replays.
void scheduler_shell::on_executor_gone() {
  executor_is_gone_ = true;
  for (std::size_t turn = results_.size(); turn < in_flight_.size(); ++turn) {
    give_up(in_flight_[turn]);
  }
}

// What only releases is answered by the block manager anyway. The step may be
// back already, ahead of its turn.
void scheduler_shell::give_up(const step_ptr& committed) {
  const bool is_back =
      std::ranges::find(arrived_, committed, &arrived_result::first) != arrived_.end();
  if (!committed->releases_only() && !is_back) send(blocks_, fail_atom::value, committed);
}

// Without the actors that know the blocks nothing can be decided as a replay
// would: the log ends here, and all steps fail as they are planned.
void scheduler_shell::on_ring_broken() {
  ring_is_broken_ = true;
  setup_.log->disable();
  arrived_.clear();
  fail_steps_in_flight();
  if (asking_) {
    asking_ = false;
    question_ = std::make_shared<match_batch>();  // others may still hold the old one
    end_plan(nullptr);
  }
  pump();
}

// Books a failure in place of each step, with the little that it takes: the step
// itself may be in somebody's hands.
void scheduler_shell::fail_steps_in_flight() {
  for (std::size_t turn = results_.size(); turn < in_flight_.size(); ++turn) {
    auto failure = std::make_shared<step>();
    failure->id = in_flight_[turn]->id;
    failure->forks = in_flight_[turn]->forks;
    failure->work = in_flight_[turn]->work;
    failure->result.status = step_status::failed;
    in_flight_[turn] = failure;
    results_.emplace_back(std::move(failure), now());
  }
}

}  // namespace octavo::actors
