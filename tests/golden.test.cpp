// The golden property where it can break: the same header and the same ordered
// inputs give the same bytes. Engines of actors on threads and a wall clock, with
// a small pool, random step times, four submitting threads and random cancels,
// leave logs that a replay without any of these must reproduce byte for byte.
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sim/cost/constant.hpp"
#include "sim/replay/replay.hpp"
#include "sim/world/simulation.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/random_executor.hpp"
#include "tests/support/real_engine.hpp"
#include "traces/log_file.hpp"
#include "traces/temp_file.hpp"

using namespace octavo;

namespace {

constexpr int submitters = 4;
constexpr int requests_each = 12;

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

test::real_run_setup setup_of(std::uint64_t seed) {
  test::real_run_setup setup;
  setup.config = config_of(seed);
  setup.device = [seed] {
    test::random_executor_options options;
    options.seed = seed;
    if (seed % 10 == 9) options.dies_in_step = 20 + seed;
    return std::make_unique<test::random_executor>(options);
  };
  setup.clients = submitters;
  setup.requests = submitters * requests_each;
  setup.client = [seed](int number, const auto& engine, const auto& sink) {
    run_client(seed, number, engine, sink);
  };
  return setup;
}

}  // namespace

TEST_CASE("golden: a real engine's decisions are replayed byte for byte, 100 times") {
  scheduler_statistics all;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    INFO("seed " << seed << ", " << to_json(config_of(seed)));
    const traces::temp_file file{"", ".log"};
    test::real_run run{setup_of(seed), file.path()};
    const scheduler_statistics sums = run.run();
    INFO(test::text_of(sums));
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
