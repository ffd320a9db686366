// The clients: closed loops, conversations, cancellations, and what the cache
// makes of shared prefixes. Steps take 100 ms.
#include "sim/world/workload_source.hpp"

#include <algorithm>

#include "tests/support/catch.hpp"
#include "tests/support/sim_world.hpp"

using namespace octavo;
using sim::request_outcome;
using test::request_after;
using test::request_at;
using test::seconds_us;
using test::set_prefix;
using test::trace_of;
using test::world_of;

namespace {

// Requests that have arrived and not ended just after moment `t`.
std::int64_t outstanding_at(const sim::simulation_outcome& o, micros t) {
  return std::ranges::count_if(o.requests, [&](const request_outcome& r) {
    return r.arrival >= micros{0} && r.arrival <= t && r.last_token > t;
  });
}

std::int32_t cached(const sim::simulation_outcome& o, std::size_t i) {
  return o.requests[i].cached_tokens.raw();
}

// A request, and a second or later one long after it has ended.
sim::simulation_options prefix_world(std::int32_t tokens, std::int32_t engine_block,
                                     const std::vector<std::uint64_t>& first,
                                     const std::vector<std::uint64_t>& second) {
  traces::trace t = trace_of({request_at(0, tokens, 2), request_at(60, tokens, 2)});
  t.prefix_block = token_count{16};
  set_prefix(t, 0, first);
  set_prefix(t, 1, second);
  auto world = world_of(std::move(t));
  world.engine.block_size = token_count{engine_block};
  return world;
}

std::vector<std::uint64_t> ids(std::size_t count, std::size_t changed) {
  std::vector<std::uint64_t> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(i >= changed ? 9000 + i : i + 1);
  return all;
}

}  // namespace

TEST_CASE("a closed loop keeps exactly N outstanding, from the first moment to the drain") {
  std::vector<traces::request> requests;
  for (int i = 0; i < 20; ++i) requests.push_back(request_at(i * 100, 10, 1 + i % 4));
  auto world = world_of(requests);
  world.work.concurrency = 3;
  const auto o = simulate(world);
  CHECK(o.requests[2].arrival == micros{0});
  CHECK(o.requests[3].arrival == seconds_us(0.1));  // the first one's text has one token
  const micros last = o.requests.back().arrival;
  for (micros t{0}; t < last; t += micros{10'000}) CHECK(outstanding_at(o, t) == 3);
}

TEST_CASE("in a closed loop later turns take their place in it, never one beside it") {
  std::vector<traces::request> requests;
  for (std::uint32_t i = 0; i < 6; ++i) {
    requests.push_back(request_at(0, 10, 3));
    requests.push_back(request_after(2 * i, 0.35, 10, 2));
  }
  auto world = world_of(requests);
  world.work.concurrency = 2;
  const auto o = simulate(world);
  for (const request_outcome& r : o.requests) CHECK(r.completed());
  for (micros t{0}; t < o.end; t += micros{10'000}) CHECK(outstanding_at(o, t) <= 2);
  // A turn comes no sooner than its think time after the answer.
  for (std::uint32_t i = 0; i < 6; ++i) {
    CHECK(o.requests[2 * i + 1].arrival >= o.requests[2 * i].last_token + seconds_us(0.35));
  }
}

TEST_CASE("a later turn arrives its think time after the answer, and unscaled") {
  auto world =
      world_of({request_at(1, 10, 3), request_after(0, 0.5, 10, 1), request_after(1, 0.05, 10, 1)});
  world.work.rate_scale = 2;
  const auto o = simulate(world);
  CHECK(o.requests[0].arrival == seconds_us(0.5));
  CHECK(o.requests[0].last_token == seconds_us(0.8));
  CHECK(o.requests[1].arrival == seconds_us(1.3));
  CHECK(o.requests[1].last_token == seconds_us(1.4));
  CHECK(o.requests[2].arrival == seconds_us(1.45));
}

TEST_CASE("a cancel takes effect at the step boundary, behind the step's token") {
  auto requests = std::vector{request_at(0, 10, 50), request_at(0, 10, 6)};
  requests[0].cancel = seconds_us(0.25);
  const auto o = simulate(world_of(requests));
  CHECK(o.requests[0].finish == reason::finished_cancelled);
  CHECK(o.requests[0].output_tokens == token_count{3});
  CHECK(o.requests[0].last_token == seconds_us(0.3));
  CHECK(o.requests[1].last_token == seconds_us(0.6));
}

TEST_CASE("a cancel while queued ends the request at the next boundary; a late one does nothing") {
  auto requests = std::vector{request_at(0, 10, 6), request_at(0, 10, 6), request_at(0, 10, 1)};
  requests[0].cancel = seconds_us(30);
  requests[1].cancel = seconds_us(0.12);
  auto world = world_of(requests);
  world.engine.max_num_seqs = 1;
  const auto o = simulate(world);
  CHECK(o.requests[0].completed());
  CHECK(o.requests[1].finish == reason::finished_cancelled);
  CHECK(o.requests[1].first_token < micros{0});
  CHECK(o.requests[2].first_token == seconds_us(0.7));
  CHECK(o.end == seconds_us(0.7));  // the last input, not the last timer
}

TEST_CASE("who was cancelled or refused has no next turn, nor has that one a next") {
  auto requests =
      std::vector{request_at(0, 5000, 5), request_after(0, 1, 10, 1),   request_after(1, 1, 10, 1),
                  request_at(0, 10, 9),   request_after(3, 0.1, 10, 1), request_at(5, 10, 1)};
  requests[3].cancel = seconds_us(0.15);
  const auto o = simulate(world_of(requests));
  for (const int i : {1, 2, 4}) {
    CHECK(o.requests[i].arrival < micros{0});
    CHECK(o.requests[i].finish == reason::finished_cancelled);
  }
  CHECK(o.requests[5].completed());
  CHECK(o.submitted == 3);
}

TEST_CASE("a very long conversation that ends early is abandoned whole") {
  std::vector<traces::request> requests{request_at(0, 5000, 5)};
  for (std::uint32_t i = 0; i < 200'000; ++i) requests.push_back(request_after(i, 1, 10, 1));
  const auto o = simulate(world_of(requests));
  CHECK(o.requests.back().finish == reason::finished_cancelled);
  CHECK(o.submitted == 1);
}

TEST_CASE("a shared prefix is a hit in whole engine blocks") {
  // 1,040 tokens; the first 40 trace blocks, 640 tokens, are equal.
  CHECK(cached(simulate(prefix_world(1040, 16, ids(65, 99), ids(65, 40))), 1) == 640);
  CHECK(cached(simulate(prefix_world(1040, 32, ids(65, 99), ids(65, 40))), 1) == 640);
  CHECK(cached(simulate(prefix_world(1040, 8, ids(65, 99), ids(65, 40))), 1) == 640);
  CHECK(cached(simulate(prefix_world(1040, 512, ids(65, 99), ids(65, 40))), 1) == 512);
  CHECK(cached(simulate(prefix_world(1040, 512, ids(65, 99), ids(65, 31))), 1) == 0);
}

TEST_CASE("a partial last block is never shared, and the last token is always computed") {
  // Equal prompts of 40 tokens: two full blocks and 8 tokens more.
  const auto o = simulate(prefix_world(40, 16, ids(3, 99), ids(3, 99)));
  CHECK(cached(o, 1) == 32);
  CHECK(o.query_tokens == 80);
  CHECK(o.hit_tokens == 32);
  // Equal prompts of 32 tokens: of two full blocks the second is computed again.
  CHECK(cached(simulate(prefix_world(32, 16, ids(2, 99), ids(2, 99))), 1) == 16);
}

TEST_CASE("what is being computed is no hit yet") {
  traces::trace t = trace_of({request_at(0, 64, 2), request_at(0, 64, 2), request_at(0.05, 64, 2)});
  t.prefix_block = token_count{16};
  for (std::size_t i = 0; i < 3; ++i) set_prefix(t, i, ids(4, 99));
  const auto o = simulate(world_of(std::move(t)));
  CHECK(cached(o, 1) == 0);
  CHECK(cached(o, 2) == 48);
}

TEST_CASE("the next turn finds its history, the answer included") {
  // 32 + 17 tokens, of which all but the last were computed: three full blocks.
  traces::trace t = trace_of({request_at(0, 32, 17), request_after(0, 1, 80, 2)});
  t.prefix_block = token_count{16};
  set_prefix(t, 0, {1, 2});
  set_prefix(t, 1, {1, 2, 7, 8, 9});
  SECTION("an answer that fills its block") {
    CHECK(cached(simulate(world_of(std::move(t))), 1) == 48);
  }
  SECTION("an answer whose last token would be needed to fill it") {
    t.requests[0].output_tokens = token_count{16};
    CHECK(cached(simulate(world_of(std::move(t))), 1) == 32);
  }
  SECTION("caching is off") {
    auto world = world_of(std::move(t));
    world.engine.enable_prefix_caching = false;
    CHECK(cached(simulate(world), 1) == 0);
  }
}

TEST_CASE("warm-up requests run but their token gaps are not counted") {
  auto world = world_of({request_at(0, 10, 5), request_at(10, 10, 3)});
  world.work.warmup = 1;
  const auto o = simulate(world);
  CHECK(o.requests[0].completed());
  CHECK(o.itl_us.count() == 2);
}

TEST_CASE(
    "only the first so many requests come, and a turn whose first is cut off comes by itself") {
  auto world = world_of({request_at(0, 10, 5), request_after(2, 9, 10, 3), request_at(2, 10, 3)});
  world.work.requests = 2;
  const auto o = simulate(world);
  CHECK(o.requests.size() == 2);
  CHECK(o.requests[1].arrival == micros{0});
  CHECK(o.requests[1].completed());
}
