// Static batching, one hand-cranked tick at a time. Blocks hold 4 tokens, four
// requests make a full batch, and a batch waits 100 ms to fill.
#include "core/policy/static_batch.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/hand_tick.hpp"

using namespace octavo;
using namespace octavo::test;

namespace {

constexpr auto rule = policy_kind::static_batch;

}  // namespace

TEST_CASE("a batch that is not full waits, and asks to be woken when the wait is over") {
  hand_tick h{hand_config(100)};
  h.oldest = micros{5'000};
  h.now = micros{6'000};
  sequence& a = h.waits(1, {});
  h.waits(2, {});
  h.decide(rule);
  CHECK(h.plan.work.empty());
  CHECK(h.held(a) == held_as(a, reason::waiting_for_batch, 2, 4));
  CHECK(h.t->wake == micros{105'000});
}

TEST_CASE("a batch starts when it is full") {
  hand_tick h{hand_config(100)};
  for (std::uint64_t id = 1; id <= 5; ++id) h.waits(id, {.max_tokens = 10});
  h.decide(rule);
  CHECK(h.plan.work.size() == 4);
  CHECK_FALSE(h.t->wake);
}

TEST_CASE("a batch starts when the next request would not fit") {
  hand_tick h{hand_config(10)};
  h.waits(1, {.max_tokens = 16});  // 5 blocks each, with the worst case
  h.waits(2, {.max_tokens = 16});
  sequence& c = h.waits(3, {.max_tokens = 16});
  h.decide(rule);
  CHECK(h.plan.work.size() == 2);
  CHECK(h.ran(c) == -1);
}

TEST_CASE("a batch starts when the oldest has waited long enough") {
  hand_tick h{hand_config(100)};
  h.oldest = micros{5'000};
  h.now = micros{105'000};
  h.waits(1, {});
  h.decide(rule);
  CHECK(h.plan.work.size() == 1);
}

TEST_CASE("a batch starts when no more will come") {
  hand_tick h{hand_config(100)};
  h.draining = true;
  h.waits(1, {});
  h.decide(rule);
  CHECK(h.plan.work.size() == 1);
}

TEST_CASE("prompts are padded to the longest, beyond the budget of other policies") {
  hand_tick h{hand_config(100)};
  h.draining = true;
  h.waits(1, {.prompt = 30});
  sequence& b = h.waits(2, {.prompt = 12});
  h.decide(rule);
  REQUIRE(h.plan.work.size() == 2);
  CHECK(h.plan.work[0].padding == token_count{0});
  CHECK(h.plan.work[1].padding == token_count{18});
  CHECK(h.ran(b) == 12);
  CHECK(h.plan.work[1].samples == 1);
}

TEST_CASE("a place whose text has ended computes padding until the longest ends") {
  hand_tick h{hand_config(100)};
  const hand_sequence decode{
      .prompt = 5, .output = 1, .computed = 5, .max_tokens = 6, .reserved = 11};
  h.runs(1, decode).held_by_batch = true;
  sequence& b = h.runs(2, decode);
  h.waits(3, {});
  h.decide(rule);
  REQUIRE(h.plan.work.size() == 2);
  CHECK(h.ran(b) == 1);
  CHECK(h.plan.work[1].request == request_id{1});
  CHECK(h.plan.work[1].count == token_count{0});
  CHECK(h.plan.work[1].padding == token_count{1});
  CHECK(h.plan.work[1].samples == 0);
  CHECK(h.wanted == 0);
  REQUIRE(h.t->closed);
  CHECK(h.t->closed->why == reason::static_batch_running);
}

TEST_CASE("padding alone is not worth a step") {
  hand_tick h{hand_config(100)};
  const hand_sequence ending{
      .prompt = 5, .output = 1, .computed = 6, .max_tokens = 2, .reserved = 7, .in_flight = 1};
  h.runs(1, ending).held_by_batch = true;
  h.runs(2, ending);
  h.decide(rule);
  CHECK(h.plan.work.empty());
}
