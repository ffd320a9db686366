// The golden property where it can break: the same header and the same ordered
// inputs give the same bytes. Engines of actors on threads and a wall clock, with
// a small pool, random step times, four submitting threads and random cancels,
// leave logs that a replay without any of these must reproduce byte for byte.
#include <algorithm>
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
#include "sim/cost/constant.hpp"
#include "sim/replay/replay.hpp"
#include "sim/world/simulation.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/random_executor.hpp"
#include "traces/log_file.hpp"
#include "traces/temp_file.hpp"

using namespace octavo;
using namespace std::chrono_literals;

namespace {

constexpr int submitters = 4;
constexpr int requests_each = 12;

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

engine_config config_of(std::uint64_t seed) {
  const traces::random_stream draw{seed, 10};
  engine_config c;
  c.policy = static_cast<policy_kind>(seed % 4);
  c.run_ahead = static_cast<std::int32_t>(seed / 4 % 2);
  c.enable_prefix_caching = seed / 8 % 2 == 0;
  c.scheduling_policy = static_cast<ordering_kind>(draw.below(0, 3));
  c.block_size = token_count{4};
  c.num_blocks = block_count{24};
  c.max_model_len = token_count{64};
  c.max_num_seqs = static_cast<std::int32_t>(3 + draw.below(1, 4));
  c.enable_chunked_prefill = draw.below(2, 4) != 0;
  c.max_num_batched_tokens = token_count{c.enable_chunked_prefill ? 16 : 64};
  c.static_max_wait = micros{500};
  c.max_preemptions = static_cast<std::int32_t>(draw.below(3, 3));
  if (draw.below(4, 5) == 0) c.layout = kv_layout::contiguous;
  if (draw.below(5, 5) == 0) c.max_num_queued_reqs = 6;
  if (!c.enable_prefix_caching && draw.below(6, 3) == 0) {
    c.kv_groups = {kv_group{}, kv_group{token_count{8}}};
  }
  return c;
}

request_spec request_of(std::uint64_t seed, std::uint64_t id) {
  const traces::random_stream draw{seed, 100 + id};
  request_spec spec;
  spec.id = request_id{id};
  spec.prompt_tokens = token_count{static_cast<std::int32_t>(1 + draw.below(0, 30))};
  spec.max_tokens = token_count{static_cast<std::int32_t>(1 + draw.below(1, 20))};
  if (draw.below(2, 20) == 0) spec.max_tokens = token_count{60};  // may be too long
  spec.priority = static_cast<std::int32_t>(draw.below(3, 3));
  spec.n = static_cast<std::int32_t>(1 + draw.below(4, 3));
  const std::uint64_t family = draw.below(5, 3);  // the same text from its beginning
  const auto keyed = draw.below(6, 8);
  for (std::uint64_t i = 0; i < keyed && (i + 1) * 4 <= draw.below(0, 30) + 1; ++i) {
    spec.keys.push_back({traces::mix(family * 100 + i), i});
  }
  return spec;
}

// One client: submits alone and in batches, cancels what it or another sent.
void run_client(std::uint64_t seed, int number, const actors::engine_actor& engine,
                const actors::sink_actor& sink) {
  const traces::random_stream draw{seed, 20 + static_cast<std::uint64_t>(number)};
  std::uint64_t at = 0;
  auto batch = std::make_shared<std::vector<request_spec>>();
  for (int i = 0; i < requests_each; ++i) {
    const auto id = static_cast<std::uint64_t>(number * requests_each + i + 1);
    batch->push_back(request_of(seed, id));
    if (draw.below(at++, 3) != 0 || i + 1 == requests_each) {
      caf::anon_send(engine, actors::submit_atom::value, std::move(batch), sink);
      batch = std::make_shared<std::vector<request_spec>>();
    }
    if (draw.below(at++, 4) == 0) caf::anon_send(engine, actors::cancel_atom::value, id);
    if (draw.below(at++, 8) == 0) {
      caf::anon_send(engine, actors::cancel_atom::value,
                     1 + draw.below(at++, submitters * requests_each));
    }
    const auto pause = static_cast<std::int64_t>(draw.below(at++, 400));
    if (pause > 100) std::this_thread::sleep_for(std::chrono::microseconds{pause});
  }
}

std::string text_of(const scheduler_statistics& s) {
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

// An engine in the real world, from spawn to a closed log.
class real_run {
 public:
  real_run(std::uint64_t seed, const std::filesystem::path& file)
      : seed_(seed), config_(config_of(seed)), file_(file, to_json(config_)) {
    log_ = std::make_shared<decision_log>(to_json(config_));
    log_->set_sink(&file_);
  }

  /// Fails the test where a request is lost or ends twice. Returns the sums.
  scheduler_statistics run() {
    caf::actor_system_config options;
    options.set("scheduler.max-threads", std::size_t{3});
    caf::actor_system system{options};
    const actors::replica ring = spawn(system);
    const auto engine = system.spawn<actors::engine_shell>(router_kind::round_robin,
                                                           std::vector{ring.scheduler}, nullptr);
    const actors::sink_actor sink = system.spawn<listener>(std::ref(ends_));
    const auto questions = system.spawn<asker>(engine, std::ref(ends_));
    std::vector<std::thread> clients;
    for (int i = 0; i < submitters; ++i) {
      clients.emplace_back([&, i] { run_client(seed_, i, engine, sink); });
    }
    for (std::thread& client : clients) client.join();
    statistics(questions);  // and drain
    const bool all_ended = ends_.wait_for(submitters * requests_each, 30s);
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
    random_executor_options options;
    options.seed = seed_;
    if (seed_ % 10 == 9) options.dies_in_step = 20 + seed_;
    const auto executor = system.spawn<actors::executor_shell, caf::detached>(
        std::make_unique<test::random_executor>(options));
    actors::scheduler_setup setup;
    setup.config = config_;
    setup.clock = actors::engine_clock{system.clock().now()};
    setup.log = log_;
    setup.explained_requests = 8;
    return actors::spawn_replica(system, std::move(setup), executor);
  }

  scheduler_statistics statistics(const asker_actor& questions) {
    caf::anon_send(questions, actors::statistics_atom::value);
    const auto answer = ends_.wait_for_statistics(10s);
    if (!answer) FAIL_CHECK("the scheduler does not answer");
    return answer.value_or(scheduler_statistics{});
  }

  // A step that was planned ahead may outlive the last request and hold blocks.
  scheduler_statistics statistics_at_rest(const asker_actor& questions) {
    scheduler_statistics sums = statistics(questions);
    for (int tries = 0; tries < 1000; ++tries) {
      if (sums.running + sums.waiting + sums.blocks_used.raw() == 0) break;
      std::this_thread::sleep_for(1ms);
      sums = statistics(questions);
    }
    return sums;
  }

  using random_executor_options = test::random_executor_options;

  std::uint64_t seed_;
  engine_config config_;
  guarded_log file_;
  std::shared_ptr<decision_log> log_;
  ledger_of_ends ends_;
};

}  // namespace

TEST_CASE("golden: a real engine's decisions are replayed byte for byte, 100 times") {
  scheduler_statistics all;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    INFO("seed " << seed << ", " << to_json(config_of(seed)));
    const traces::temp_file file{"", ".log"};
    real_run run{seed, file.path()};
    const scheduler_statistics sums = run.run();
    INFO(text_of(sums));
    CHECK(sums.submitted == submitters * requests_each);
    CHECK(sums.completed + sums.rejected + sums.cancelled + sums.failed == sums.submitted);
    CHECK(sums.running + sums.waiting + sums.blocks_used.raw() == 0);
    const sim::replay_report report = sim::verify_log(file.path());
    if (report.difference) FAIL(sim::describe(*report.difference));
    CHECK(report.records > 0);
    all.completed += sums.completed;
    all.rejected += sums.rejected;
    all.cancelled += sums.cancelled;
    all.failed += sums.failed;
    all.preemptions += sums.preemptions;
    all.wasted_tokens += sums.wasted_tokens;
  }
  // The runs are worth something only if all of this happened.
  CHECK(all.completed > 0);
  CHECK(all.rejected > 0);
  CHECK(all.cancelled > 0);
  CHECK(all.failed > 0);
  CHECK(all.preemptions > 0);
  CHECK(all.wasted_tokens > 0);
}

TEST_CASE("golden: a simulated fleet's decisions are replayed byte for byte") {
  auto trace = std::make_shared<traces::trace>();
  const traces::random_stream draw{5, 0};
  for (std::uint32_t i = 0; i < 400; ++i) {
    traces::request r;
    r.arrival = micros{static_cast<std::int64_t>(i * 900)};
    r.prompt_tokens = token_count{static_cast<std::int32_t>(1 + draw.below(i * 4ULL, 60))};
    r.output_tokens = token_count{static_cast<std::int32_t>(1 + draw.below(i * 4ULL + 1, 40))};
    if (draw.below(i * 4ULL + 2, 10) == 0) r.cancel = micros{20'000};
    trace->requests.push_back(r);
  }
  sim::simulation_options options;
  options.trace = trace;
  options.cost = std::make_shared<sim::constant_cost>(1500.0);
  options.replicas = 3;
  options.router = router_kind::least_loaded;
  options.engine.block_size = token_count{8};
  options.engine.num_blocks = block_count{48};
  options.engine.max_model_len = token_count{200};
  options.engine.max_num_seqs = 12;
  options.engine.run_ahead = GENERATE(0, 1);
  options.work.limit = sim::assumed_limit::exact;
  const traces::temp_file file{"", ".log"};
  traces::log_file_writer writer{file.path()};
  options.log_file = &writer;
  const sim::simulation_outcome outcome = sim::simulate(options);
  writer.close();
  CHECK(outcome.preemptions > 0);
  const sim::replay_report report = sim::verify_log(file.path());
  if (report.difference) FAIL(sim::describe(*report.difference));
  CHECK(report.replicas == 3);
  CHECK(report.records >= static_cast<std::uint64_t>(outcome.steps));
}

TEST_CASE("golden: the hash of a replay is the hash of the run") {
  auto trace = std::make_shared<traces::trace>();
  for (int i = 0; i < 20; ++i) {
    traces::request r;
    r.arrival = micros{i * 1000};
    r.prompt_tokens = token_count{20 + i};
    r.output_tokens = token_count{5 + i};
    trace->requests.push_back(r);
  }
  sim::simulation_options options;
  options.trace = trace;
  options.cost = std::make_shared<sim::constant_cost>(1500.0);
  options.engine.num_blocks = block_count{64};
  const traces::temp_file file{"", ".log"};
  traces::log_file_writer writer{file.path()};
  options.log_file = &writer;
  const sim::simulation_outcome outcome = sim::simulate(options);
  writer.close();
  const sim::replay_report report = sim::verify_log(file.path());
  CHECK_FALSE(report.difference.has_value());
  CHECK(to_hex(report.hash) == to_hex(outcome.decision_log_hash));
}
