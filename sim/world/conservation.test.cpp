// Whatever the configuration, every request ends exactly once and no run hangs.
#include <algorithm>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/sim_world.hpp"
#include "traces/synth.hpp"

using namespace octavo;
using sim::request_outcome;
using test::request_at;
using test::world_of;

namespace {

// Conversations with shared prefixes, some cancelled, some longer than the model.
traces::trace troubled_trace() {
  traces::synth_options o;
  o.requests = 80;
  o.rate_rps = 20;
  o.prompt = {90, 0.8, token_count{1}, token_count{600}};
  o.output = {25, 0.9, token_count{1}, token_count{200}};
  o.prefixes = 3;
  o.prefix_tokens = token_count{64};
  o.turns_max = 3;
  o.think_s = 0.3;
  traces::trace t = synthesize(o);
  for (std::size_t i = 0; i < t.requests.size(); i += 7) {
    t.requests[i].cancel = micros{static_cast<std::int64_t>(i % 5) * 70'000};
  }
  return t;
}

// 48 blocks of 16 tokens: three whole contexts, or a dozen usual ones.
sim::simulation_options cramped_world(const traces::trace& trace) {
  auto world = world_of(trace);
  world.engine.num_blocks = block_count{48};
  world.engine.max_model_len = token_count{256};
  world.engine.max_num_seqs = 8;
  world.engine.max_num_batched_tokens = token_count{256};
  world.cost = std::make_shared<test::flat_cost>(10'000, 1'000);
  return world;
}

void check_every_request_ends_once(sim::simulation_options world) {
  std::uint64_t ended = 0;
  world.progress = [&](std::uint64_t so_far, std::uint64_t) { ended = so_far; };
  const auto o = simulate(world);
  CHECK(ended == o.requests.size());
  for (std::size_t i = 0; i < o.requests.size(); ++i) {
    const request_outcome& r = o.requests[i];
    INFO("request " << i << " " << to_string(r.finish));
    CHECK(r.ended());
    if (r.completed()) {
      CHECK(r.arrival <= r.admitted);
      CHECK(r.admitted < r.first_token);
      CHECK(r.first_token <= r.last_token);
      CHECK(r.last_token <= o.end);
      CHECK(r.output_tokens > token_count{0});
      CHECK(r.cached_tokens < r.prompt_tokens);
    }
  }
  const double pool_seconds = o.usage.seconds * world.engine.num_blocks.raw();
  CHECK(o.usage.block_seconds <= pool_seconds);
  CHECK(o.usage.token_seconds <= o.usage.block_seconds * world.engine.block_size.raw() + 1e-9);
  CHECK(o.hit_tokens <= o.query_tokens);
}

}  // namespace

TEST_CASE("every request ends once: all policies, layouts, replicas and depths of running ahead") {
  const traces::trace trace = troubled_trace();
  for (const auto policy : {policy_kind::continuous, policy_kind::prefill_first,
                            policy_kind::reserve, policy_kind::static_batch}) {
    for (const auto layout : {kv_layout::paged, kv_layout::contiguous}) {
      for (const std::uint32_t replicas : {1U, 3U}) {
        for (const std::int32_t ahead : {0, 1}) {
          INFO(to_string(policy) << ' ' << to_string(layout) << ", replicas " << replicas
                                 << ", run-ahead " << ahead);
          auto world = cramped_world(trace);
          world.engine.policy = policy;
          world.engine.layout = layout;
          world.engine.run_ahead = ahead;
          world.replicas = replicas;
          world.router = router_kind::prefix_affinity;
          check_every_request_ends_once(world);
        }
      }
    }
  }
}

TEST_CASE("every request ends once: orderings, routers, whole prompts, closed loop, no cache") {
  const traces::trace trace = troubled_trace();
  auto world = cramped_world(trace);
  SECTION("priority") {
    world.engine.scheduling_policy = ordering_kind::priority;
  }
  SECTION("shortest first") {
    world.engine.scheduling_policy = ordering_kind::shortest_first;
  }
  SECTION("whole prompts") {
    world.engine.enable_chunked_prefill = false;
  }
  SECTION("no cache") {
    world.engine.enable_prefix_caching = false;
  }
  SECTION("closed loop") {
    world.work.concurrency = 5;
  }
  SECTION("closed loop, ahead") {
    world.work.concurrency = 5;
    world.engine.run_ahead = 1;
  }
  SECTION("least loaded") {
    world.replicas = 4;
    world.router = router_kind::least_loaded;
  }
  SECTION("round robin, closed loop") {
    world.replicas = 4;
    world.work.concurrency = 7;
  }
  SECTION("a bounded queue") {
    world.engine.max_num_queued_reqs = 3;
  }
  SECTION("exact limits") {
    world.work.limit = sim::assumed_limit::exact;
  }
  check_every_request_ends_once(world);
}

TEST_CASE("overload: a burst of 3,000 requests is worked off, all of it") {
  traces::synth_options o;
  o.requests = 3000;
  o.arrivals = traces::arrival_kind::at_once;
  o.prompt = {40, 0.5, token_count{1}, token_count{120}};
  o.output = {8, 0.5, token_count{1}, token_count{40}};
  auto world = cramped_world(synthesize(o));
  const auto run = simulate(world);
  CHECK(std::ranges::all_of(run.requests, &request_outcome::completed));
  world.engine.max_num_queued_reqs = 100;
  const auto bounded = simulate(world);
  CHECK(std::ranges::all_of(bounded.requests, &request_outcome::ended));
  CHECK(std::ranges::count(bounded.requests, reason::rejected_queue_full,
                           &request_outcome::finish) > 2000);
}

TEST_CASE("a lone request that outgrows the pool ends with what it has") {
  auto world = cramped_world(test::trace_of({request_at(0, 100, 900), request_at(0, 20, 3)}));
  world.engine.num_blocks = block_count{10};
  world.engine.max_model_len = token_count{2000};
  world.engine.max_num_batched_tokens = token_count{2000};
  for (const auto policy : {policy_kind::continuous, policy_kind::prefill_first,
                            policy_kind::reserve, policy_kind::static_batch}) {
    INFO(to_string(policy));
    world.engine.policy = policy;
    const auto o = simulate(world);
    // The pool holds 160 tokens, and the last one sampled needs no place of its own.
    CHECK(o.requests[0].finish == reason::finished_kv_exhausted);
    CHECK(o.requests[0].output_tokens == token_count{61});
    CHECK(o.requests[1].finish == reason::finished_eos);
  }
}

TEST_CASE("a prompt that can never fit is refused at once, others are served") {
  auto world = cramped_world(test::trace_of({request_at(0, 900, 5), request_at(0, 20, 3)}));
  world.engine.max_model_len = token_count{2000};
  world.engine.max_num_batched_tokens = token_count{2000};
  for (const auto policy : {policy_kind::continuous, policy_kind::prefill_first,
                            policy_kind::reserve, policy_kind::static_batch}) {
    INFO(to_string(policy));
    world.engine.policy = policy;
    const auto o = simulate(world);
    CHECK(o.requests[0].finish == reason::rejected_never_fits);
    CHECK(o.requests[1].completed());
  }
}

TEST_CASE(
    "a static batch starts when full, when its oldest has waited, or when no more will come") {
  std::vector<traces::request> requests;
  for (int i = 0; i < 6; ++i) requests.push_back(request_at(0, 10, 2));
  auto world = world_of(requests);
  world.engine.max_model_len = token_count{1000};
  world.engine.policy = policy_kind::static_batch;
  world.engine.max_num_seqs = 4;
  SECTION("the tail of a drained queue") {
    const auto o = simulate(world);
    CHECK(o.requests[3].last_token == test::seconds_us(0.2));
    CHECK(o.requests[5].first_token == test::seconds_us(0.3));
  }
  SECTION("one more is to come much later: the tail waits as long as it may") {
    requests.push_back(request_at(50, 10, 1));
    world.trace = std::make_shared<traces::trace>(test::trace_of(requests));
    world.engine.static_max_wait = test::seconds_us(0.75);
    const auto o = simulate(world);
    CHECK(o.requests[3].last_token == test::seconds_us(0.2));
    CHECK(o.requests[5].first_token == test::seconds_us(0.85));
    CHECK(o.requests[6].first_token == test::seconds_us(50.1));
  }
}
