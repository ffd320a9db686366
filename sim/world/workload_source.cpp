// The clients of the simulated world: see workload_source.hpp.
#include "sim/world/workload_source.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace octavo::sim {

workload_source::workload_source(caf::actor_config& config, std::shared_ptr<const workload> work,
                                 actors::engine_clock clock, std::uint32_t replicas,
                                 simulation_outcome& outcome, progress_callback progress)
    : source_actor::base(config),
      work_(std::move(work)),
      clock_(clock),
      outcome_(outcome),
      progress_(std::move(progress)),
      gauges_(replicas) {
  outcome_.requests.resize(work_->size());
}

source_actor::behavior_type workload_source::make_behavior() {
  return {
      [this](start_atom, const actors::engine_actor& engine) {
        engine_ = engine;
        self_sink_ = caf::actor_cast<actors::sink_actor>(this);
        arrive_due();
      },
      [this](arrive_atom) { arrive_due(); },
      [this](actors::cancel_atom, std::uint64_t id) {
        if (!outcome_.requests[id].ended()) send(engine_, actors::cancel_atom::value, id);
      },
      [this](actors::events_atom, const actors::event_batch_ptr& batch) { hear(*batch); },
  };
}

micros workload_source::now() {
  return clock_.at(clock().now());
}

bool workload_source::arrives_by_itself(std::uint32_t index) const {
  const std::uint32_t after = work_->trace().requests[index].after;
  return after == traces::none || after >= work_->size();
}

void workload_source::skip_dependent() {
  while (next_ < work_->size() && !arrives_by_itself(next_)) ++next_;
}

// Everything that has arrived by now goes out as one batch.
void workload_source::arrive_due() {
  armed_ = micros{-1};
  const micros moment = now();
  batch_ = std::make_shared<std::vector<request_spec>>();
  const std::uint32_t loop = work_->options().concurrency;
  for (;;) {
    skip_dependent();
    if (loop > 0 && outstanding_ >= loop) break;
    if (!dependent_.empty() && dependent_.top().at <= moment) {
      const std::uint32_t index = dependent_.top().index;
      dependent_.pop();
      submit(index);
    } else if (next_ < work_->size() && (loop > 0 || work_->arrival(next_) <= moment)) {
      submit(next_++);
    } else {
      break;
    }
  }
  if (!batch_->empty()) send(engine_, actors::submit_atom::value, batch_, self_sink_);
  batch_ = nullptr;
  arm();
  drain_if_done();
}

void workload_source::submit(std::uint32_t index) {
  request_spec spec = work_->spec_of(index);
  const traces::request& r = work_->trace().requests[index];
  request_outcome& record = outcome_.requests[index];
  record.arrival =
      work_->options().concurrency > 0 || !arrives_by_itself(index) ? now() : work_->arrival(index);
  record.prompt_tokens = spec.prompt_tokens;
  batch_->push_back(std::move(spec));
  ++arrived_;
  ++outstanding_;
  note_arrival();
  if (r.cancel >= micros{0}) {
    delayed_send(this, std::chrono::microseconds{r.cancel.raw()}, actors::cancel_atom::value,
                 std::uint64_t{index});
  }
}

// A timer for the next arrival that does not wait for a finish.
void workload_source::arm() {
  const std::uint32_t loop = work_->options().concurrency;
  if (loop > 0 && outstanding_ >= loop) return;
  micros next{-1};
  if (loop == 0 && next_ < work_->size()) next = work_->arrival(next_);
  if (!dependent_.empty() && (next < micros{0} || dependent_.top().at < next)) {
    next = dependent_.top().at;
  }
  if (next < micros{0} || (armed_ >= micros{0} && armed_ <= next)) return;
  armed_ = next;
  const micros wait = std::max(micros{0}, next - now());
  delayed_send(this, std::chrono::microseconds{wait.raw()}, arrive_atom::value);
}

void workload_source::note_arrival() {
  // The time before there was anything to do is nobody's.
  if (arrived_ == 1) {
    for (gauge& g : gauges_) g.since = now();
  }
  outcome_.submitted = static_cast<std::int64_t>(arrived_);
  outcome_.last_arrival = now();
  std::int64_t waiting = 0;
  std::int64_t running = 0;
  for (const gauge& g : gauges_) {
    waiting += g.waiting;
    running += g.running;
  }
  if (arrived_ == (work_->size() + 1) / 2) outcome_.waiting_at_middle = waiting;
  outcome_.waiting_at_last = waiting;
  outcome_.running_at_last = running;
  outcome_.completed_at_last = static_cast<std::int64_t>(completed_);
}

void workload_source::hear(const actors::event_batch& batch) {
  outcome_.end = std::max(outcome_.end, batch.now);
  if (batch.after_result) note_usage(batch);
  for (const token_event& token : batch.tokens) {
    request_outcome& record = outcome_.requests[token.request.raw()];
    if (record.first_token < micros{0}) {
      record.first_token = batch.now;
    } else if (token.request.raw() >= work_->options().warmup) {
      outcome_.itl_us.record(static_cast<std::uint64_t>((batch.now - record.last_token).raw()));
    }
    record.last_token = batch.now;
  }
  for (const finish_event& end : batch.finishes) hear_finish(end, batch.replica);
  if (!batch.finishes.empty()) {
    if (work_->options().concurrency > 0) {
      arrive_due();
    } else {
      arm();
    }
    if (progress_) progress_(ended_, work_->size());
    drain_if_done();
  }
}

void workload_source::hear_finish(const finish_event& end, std::uint32_t replica) {
  const auto index = static_cast<std::uint32_t>(end.request.raw());
  request_outcome& record = outcome_.requests[index];
  record.output_tokens = end.output_tokens;
  record.cached_tokens = end.cached_tokens;
  record.preemptions = static_cast<std::uint16_t>(std::min(end.preemptions, 65535));
  record.replica = static_cast<std::uint8_t>(replica);
  record.finish = end.why;
  if (end.cached_tokens >= token_count{0}) record.admitted = end.admitted_at;
  ++ended_;
  --outstanding_;
  if (record.completed()) ++completed_;
  release_followers(index);
}

// The next turn comes a think time after the answer; where there was no answer,
// there is no next turn.
void workload_source::release_followers(std::uint32_t index) {
  for (const std::uint32_t next : work_->followers_of(index)) {
    if (outcome_.requests[index].completed()) {
      dependent_.push({now() + work_->trace().requests[next].delay, next});
    } else {
      abandon(next);
    }
  }
}

void workload_source::abandon(std::uint32_t index) {
  std::vector<std::uint32_t> lost{index};
  while (!lost.empty()) {
    const std::uint32_t one = lost.back();
    lost.pop_back();
    outcome_.requests[one].finish = reason::finished_cancelled;
    outcome_.requests[one].prompt_tokens = work_->trace().requests[one].prompt_tokens;
    ++ended_;
    ++abandoned_;
    for (const std::uint32_t next : work_->followers_of(one)) lost.push_back(next);
  }
}

void workload_source::note_usage(const actors::event_batch& batch) {
  gauge& g = gauges_[batch.replica];
  const double seconds = static_cast<double>((batch.now - g.since).raw()) * 1e-6;
  outcome_.usage.seconds += seconds;
  outcome_.usage.block_seconds += seconds * g.blocks_used.raw();
  outcome_.usage.token_seconds += seconds * static_cast<double>(g.kv_tokens);
  outcome_.usage.blocks_used_max = std::max(outcome_.usage.blocks_used_max, batch.blocks_used);
  g = {batch.now, batch.waiting, batch.running, batch.blocks_used, batch.kv_tokens};
}

void workload_source::drain_if_done() {
  if (drained_ || arrived_ + abandoned_ < work_->size()) return;
  drained_ = true;
  send(engine_, actors::drain_atom::value);
}

}  // namespace octavo::sim
