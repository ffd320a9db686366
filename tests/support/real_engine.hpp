// Tests only: an engine in the real world, of actors on threads and a wall clock,
// whose decision log a replay must reproduce byte for byte.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

#include "actors/engine_actor.hpp"
#include "actors/executor_actor.hpp"
#include "actors/ordered_actor.hpp"
#include "actors/replica.hpp"
#include "tests/support/catch.hpp"
#include "traces/log_file.hpp"

namespace octavo::test {

// What the clients hear, from the sink's thread to the test's.
class ledger_of_ends {
 public:
  void hear(const actors::event_batch& batch) {
    const std::lock_guard lock{mutex_};
    for (const token_event& token : batch.tokens) {
      if (over_.contains({token.request.raw(), token.sample})) problem_ = "a token after the end";
    }
    for (const finish_event& end : batch.finishes) {
      if (!over_.insert({end.request.raw(), end.sample}).second) problem_ = "a second end";
      if (end.request_done) ++done_[end.request.raw()];
      if (end.request_done && done_[end.request.raw()] > 1) problem_ = "a request done twice";
    }
    changed_.notify_all();
  }

  /// True when so many requests are done before the time is up.
  bool wait_for(std::size_t requests, std::chrono::seconds limit) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, limit, [&] { return done_.size() >= requests; });
  }

  void hear(const scheduler_statistics& sums) {
    const std::lock_guard lock{mutex_};
    statistics_ = sums;
    changed_.notify_all();
  }
  /// The answer to the next question, where it comes in time.
  std::optional<scheduler_statistics> wait_for_statistics(std::chrono::seconds limit) {
    std::unique_lock lock{mutex_};
    changed_.wait_for(lock, limit, [&] { return statistics_.has_value(); });
    return std::exchange(statistics_, std::nullopt);
  }

  [[nodiscard]] std::size_t done() {
    const std::lock_guard lock{mutex_};
    return done_.size();
  }
  [[nodiscard]] std::string problem() {
    const std::lock_guard lock{mutex_};
    return problem_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::pair<std::uint64_t, std::uint16_t>> over_;
  std::map<std::uint64_t, int> done_;
  std::optional<scheduler_statistics> statistics_;
  std::string problem_;
};

// Drains the engine and asks for its statistics: behind each other on one channel,
// and the answer reaches the test's thread by a way that the thread sanitizer sees.
using asker_actor = caf::typed_actor<caf::reacts_to<actors::statistics_atom>>;

class asker final : public actors::ordered_actor<asker_actor::base> {
 public:
  asker(caf::actor_config& config, actors::engine_actor engine, ledger_of_ends& ends)
      : actors::ordered_actor<asker_actor::base>(config), engine_(std::move(engine)), ends_(ends) {}

  behavior_type make_behavior() override {
    return {[this](actors::statistics_atom) {
      if (!std::exchange(drained_, true)) send(engine_, actors::drain_atom::value);
      request(engine_, caf::infinite, actors::statistics_atom::value)
          .then([this](const actors::statistics_list& all) { ends_.hear(all.front()); });
    }};
  }
  void on_exit() override { engine_ = nullptr; }

 private:
  actors::engine_actor engine_;
  ledger_of_ends& ends_;
  bool drained_ = false;
};

class listener final : public actors::ordered_actor<actors::sink_actor::base> {
 public:
  listener(caf::actor_config& config, ledger_of_ends& ends)
      : actors::ordered_actor<actors::sink_actor::base>(config), ends_(ends) {}

  behavior_type make_behavior() override {
    return {
        [this](actors::events_atom, const actors::event_batch_ptr& batch) { ends_.hear(*batch); }};
  }

 private:
  ledger_of_ends& ends_;
};

inline std::string text_of(const scheduler_statistics& s) {
  std::string text;
  const auto add = [&](const char* name, std::int64_t value) {
    text += std::string{name} + " " + std::to_string(value) + ", ";
  };
  add("submitted", s.submitted);
  add("completed", s.completed);
  add("rejected", s.rejected);
  add("cancelled", s.cancelled);
  add("failed", s.failed);
  add("steps", s.steps);
  add("running", s.running);
  add("waiting", s.waiting);
  add("blocks used", s.blocks_used.raw());
  return text + "preemptions " + std::to_string(s.preemptions);
}

// The log is written by the engine's threads and closed by the test's.
class guarded_log final : public log_sink {
 public:
  guarded_log(const std::filesystem::path& file, const std::string& header)
      : writer_(file), sink_(writer_.replica(0, header)) {}

  void on_entry(std::span<const std::byte> payload, const hash128& chain) override {
    const std::lock_guard lock{mutex_};
    sink_->on_entry(payload, chain);
  }
  void close() {
    const std::lock_guard lock{mutex_};
    writer_.close();
  }

 private:
  std::mutex mutex_;
  traces::log_file_writer writer_;
  log_sink* sink_;
};

/// What a real run is made of.
struct real_run_setup {
  engine_config config;
  /// Made anew for the run.
  std::function<std::unique_ptr<executor>()> device;
  /// Clients side by side, each on a thread of its own, and the requests of all.
  int clients = 1;
  std::size_t requests = 0;
  std::function<void(int client, const actors::engine_actor&, const actors::sink_actor&)> client;
};

/// An engine in the real world, from spawn to a closed log.
class real_run {
 public:
  real_run(real_run_setup setup, const std::filesystem::path& file)
      : setup_(std::move(setup)), file_(file, to_json(setup_.config)) {
    log_ = std::make_shared<decision_log>(to_json(setup_.config));
    log_->set_sink(&file_);
  }

  /// Fails the test where a request is lost or ends twice. Returns the sums.
  scheduler_statistics run() {
    using namespace std::chrono_literals;
    caf::actor_system_config options;
    options.set("scheduler.max-threads", std::size_t{3});
    caf::actor_system system{options};
    const actors::replica ring = spawn(system);
    const auto engine = system.spawn<actors::engine_shell>(router_kind::round_robin,
                                                           std::vector{ring.scheduler}, nullptr);
    const actors::sink_actor sink = system.spawn<listener>(std::ref(ends_));
    const auto questions = system.spawn<asker>(engine, std::ref(ends_));
    std::vector<std::thread> clients;
    for (int i = 0; i < setup_.clients; ++i) {
      clients.emplace_back([&, i] { setup_.client(i, engine, sink); });
    }
    for (std::thread& client : clients) client.join();
    statistics(questions);  // and drain
    const bool all_ended = ends_.wait_for(setup_.requests, 60s);
    const scheduler_statistics sums = statistics_at_rest(questions);
    INFO(text_of(sums) << ", requests heard to be done: " << ends_.done());
    CHECK(all_ended);
    CHECK(ends_.problem() == "");
    caf::anon_send_exit(engine, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(questions, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(sink, caf::exit_reason::user_shutdown);
    actors::stop_replica(ring);
    system.await_all_actors_done();
    file_.close();
    return sums;
  }

 private:
  actors::replica spawn(caf::actor_system& system) {
    const auto executor = system.spawn<actors::executor_shell, caf::detached>(setup_.device());
    actors::scheduler_setup setup;
    setup.config = setup_.config;
    setup.clock = actors::engine_clock{system.clock().now()};
    setup.log = log_;
    setup.explained_requests = 8;
    return actors::spawn_replica(system, std::move(setup), executor);
  }

  scheduler_statistics statistics(const asker_actor& questions) {
    caf::anon_send(questions, actors::statistics_atom::value);
    const auto answer = ends_.wait_for_statistics(std::chrono::seconds{10});
    if (!answer) FAIL_CHECK("the scheduler does not answer");
    return answer.value_or(scheduler_statistics{});
  }

  // A step that was planned ahead may outlive the last request and hold blocks.
  scheduler_statistics statistics_at_rest(const asker_actor& questions) {
    scheduler_statistics sums = statistics(questions);
    for (int tries = 0; tries < 1000; ++tries) {
      if (sums.running + sums.waiting + sums.blocks_used.raw() == 0) break;
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
      sums = statistics(questions);
    }
    return sums;
  }

  real_run_setup setup_;
  guarded_log file_;
  std::shared_ptr<decision_log> log_;
  ledger_of_ends ends_;
};

}  // namespace octavo::test
