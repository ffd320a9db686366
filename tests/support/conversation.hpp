// Conversations of actors, message by message, on one thread in virtual time.
//
//   conversation c;
//   auto ring = c.spawn_ring(config);
//   c.submit(ring, 1, request);
//   CHECK(c.said() == lines{"client > scheduler: submit", "scheduler > block manager: commit", …});
//
// Every message that is delivered is written down as "from > to: what". Actors
// take turns in order of arrival, one message each, so a transcript is exact.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include "actors/ordered_actor.hpp"
#include "actors/replica.hpp"
#include "core/decision_log.hpp"

namespace octavo::test {

using lines = std::vector<std::string>;

/// An executor that holds its steps until the test answers them.
class held_executor : public actors::ordered_actor<actors::executor_actor::base> {
 public:
  using steps = std::deque<step_ptr>;

  held_executor(caf::actor_config& config, std::shared_ptr<steps> held)
      : actors::ordered_actor<actors::executor_actor::base>(config), held_(std::move(held)) {}

  const char* name() const override { return "executor"; }
  behavior_type make_behavior() override {
    return {
        [this](actors::step_atom, const step_ptr& plan) { held_->push_back(plan); },
        [](actors::connect_atom, const actors::scheduler_actor&) {},
    };
  }

 private:
  std::shared_ptr<steps> held_;
};

/// What one client heard.
struct heard {
  std::vector<token_event> tokens;
  std::vector<finish_event> ends;

  /// Ends by request: how many, and the last one's reason.
  [[nodiscard]] int times_ended(std::uint64_t id) const {
    int count = 0;
    for (const finish_event& e : ends) count += e.request.raw() == id && e.request_done ? 1 : 0;
    return count;
  }
  [[nodiscard]] reason why(std::uint64_t id) const {
    reason last = reason::routed;
    for (const finish_event& e : ends) {
      if (e.request.raw() == id) last = e.why;
    }
    return last;
  }
};

class listening_client : public actors::ordered_actor<actors::sink_actor::base> {
 public:
  listening_client(caf::actor_config& config, std::string name, std::shared_ptr<heard> memory)
      : actors::ordered_actor<actors::sink_actor::base>(config),
        name_(std::move(name)),
        heard_(std::move(memory)) {}

  const char* name() const override { return name_.c_str(); }
  behavior_type make_behavior() override {
    return {[this](actors::events_atom, const actors::event_batch_ptr& batch) {
      heard_->tokens.insert(heard_->tokens.end(), batch->tokens.begin(), batch->tokens.end());
      heard_->ends.insert(heard_->ends.end(), batch->finishes.begin(), batch->finishes.end());
    }};
  }

 private:
  std::string name_;
  std::shared_ptr<heard> heard_;
};

/// A ring and the test's hold on its executor.
struct held_ring {
  actors::replica actors;
  std::shared_ptr<held_executor::steps> held = std::make_shared<held_executor::steps>();
  std::shared_ptr<decision_log> log;
};

class conversation {
 public:
  conversation()
      : system_(configured()),
        coordinator_(dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler())),
        start_(coordinator_.clock().now()) {}
  conversation(const conversation&) = delete;
  conversation& operator=(const conversation&) = delete;
  ~conversation() {
    for (const caf::actor_addr& one : spawned_) {
      if (auto alive = caf::actor_cast<caf::strong_actor_ptr>(one)) {
        caf::anon_send_exit(alive, caf::exit_reason::kill);
      }
    }
    coordinator_.run();
  }

  [[nodiscard]] caf::actor_system& system() { return system_; }

  // ---- who takes part
  held_ring spawn_ring(const engine_config& config, std::uint32_t replica = 0,
                       log_sink* sink = nullptr) {
    held_ring ring;
    ring.log = std::make_shared<decision_log>(to_json(config));
    ring.log->set_sink(sink);
    actors::scheduler_setup setup;
    setup.config = config;
    setup.replica = replica;
    setup.clock = actors::engine_clock{start_};
    setup.log = ring.log;
    ring.actors =
        actors::spawn_replica(system_, std::move(setup), system_.spawn<held_executor>(ring.held));
    for_all(ring, [this](const auto& one) { remember(one); });
    pump();
    transcript_.clear();
    return ring;
  }
  template <class Actor, class... Args>
  auto spawn(Args&&... args) {
    auto one = system_.spawn<Actor>(std::forward<Args>(args)...);
    remember(one);
    pump();
    transcript_.clear();
    return one;
  }
  actors::sink_actor spawn_client(const std::string& name, std::shared_ptr<heard> memory) {
    return spawn<listening_client>(name, std::move(memory));
  }

  // ---- what the test says; `to` is a scheduler or an engine
  template <class Front>
  void submit(const Front& to, const actors::sink_actor& from, request_spec spec) {
    auto batch = std::make_shared<std::vector<request_spec>>(1, std::move(spec));
    caf::send_as(from, to, actors::submit_atom::value, actors::submit_batch{std::move(batch)},
                 from);
  }
  template <class Front>
  void cancel(const Front& to, const actors::sink_actor& from, std::uint64_t id) {
    caf::send_as(from, to, actors::cancel_atom::value, id);
  }
  /// The oldest held step is done. Returns false where there is none.
  bool answer(const held_ring& ring, std::vector<sequence_finish> finishes = {},
              step_status status = step_status::ok) {
    if (ring.held->empty()) return false;
    const step_ptr done = ring.held->front();
    ring.held->pop_front();
    done->result.status = status;
    if (status == step_status::ok) done->result.finishes = std::move(finishes);
    caf::send_as(ring.actors.executor, ring.actors.scheduler, actors::result_atom::value, done);
    return true;
  }
  template <class Handle>
  void kill(const Handle& one) {
    caf::anon_send_exit(one, caf::exit_reason::kill);
  }

  // ---- going on
  /// Delivers one message. Returns false where there is none.
  bool step() {
    if (!coordinator_.has_job()) return false;
    write_down(dynamic_cast<caf::scheduled_actor*>(coordinator_.jobs.front()));
    coordinator_.run_once();
    return true;
  }
  /// Delivers messages until nobody has anything to say.
  void pump() {
    while (step()) {
    }
  }
  /// Lets virtual time pass and delivers what it brings.
  void advance(std::chrono::microseconds time) {
    coordinator_.advance_time(time);
    pump();
  }
  [[nodiscard]] bool has_timer() const { return coordinator_.has_pending_timeout(); }
  /// What was said since the last call, in order.
  lines said() {
    pump();
    return std::exchange(transcript_, {});
  }
  /// Asks, and waits for the answer.
  template <class Answer, class To, class... Question>
  Answer ask(const To& to, Question... question) {
    caf::scoped_actor self{system_};
    auto pending = self->request(to, caf::infinite, std::move(question)...);
    pump();
    Answer answer{};
    pending.receive([&](Answer& given) { answer = std::move(given); },
                    [&](const caf::error& problem) {
                      throw std::logic_error("no answer: " + system_.render(problem));
                    });
    return answer;
  }
  scheduler_statistics statistics(const held_ring& ring) {
    return ask<scheduler_statistics>(ring.actors.scheduler, actors::statistics_atom::value);
  }

 private:
  caf::actor_system_config& configured() {
    config_.set("scheduler.policy", caf::atom("testing"));
    config_.set("logger.inline-output", true);
    return config_;
  }

  template <class Function>
  static void for_all(const held_ring& ring, Function apply) {
    apply(ring.actors.scheduler);
    apply(ring.actors.prefixes);
    apply(ring.actors.blocks);
    apply(ring.actors.executor);
  }
  template <class Handle>
  void remember(const Handle& one) {
    spawned_.push_back(one.address());
  }

  void write_down(caf::scheduled_actor* to) {
    if (to == nullptr || to->mailbox().closed() || to->mailbox().blocked()) return;
    const caf::mailbox_element* next = to->mailbox().peek();
    if (next == nullptr) return;
    const std::string what = next->content().stringify(0);
    // Atoms print as 'name'; what the framework says to itself is left out.
    if (what.size() < 2 || what.front() != '\'') return;
    const caf::local_actor* from = nullptr;
    if (next->sender != nullptr) {
      from = dynamic_cast<caf::local_actor*>(caf::actor_cast<caf::abstract_actor*>(next->sender));
    }
    transcript_.push_back((from != nullptr ? from->name() : "nobody") + std::string{" > "} +
                          to->name() + ": " + what.substr(1, what.size() - 2));
  }

  caf::actor_system_config config_;
  caf::actor_system system_;
  caf::scheduler::test_coordinator& coordinator_;
  actors::engine_clock::time_point start_;
  std::vector<caf::actor_addr> spawned_;
  lines transcript_;
};

}  // namespace octavo::test
