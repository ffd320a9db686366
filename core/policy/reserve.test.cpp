// Worst case up front, one hand-cranked tick at a time. Blocks hold 4 tokens.
#include "core/policy/reserve.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/hand_tick.hpp"

using namespace octavo;
using namespace octavo::test;

namespace {

constexpr auto rule = policy_kind::reserve;

}  // namespace

TEST_CASE("a request is let in only where prompt and all it may generate fit") {
  hand_tick h{hand_config(10, 50)};
  sequence& a = h.waits(1, {.prompt = 4, .max_tokens = 20});
  sequence& b = h.waits(2, {.prompt = 4, .max_tokens = 16});
  h.decide(rule);
  CHECK(h.ran(a) == 4);
  CHECK(a.reserved_tokens == token_count{24});
  CHECK(h.ledger.used() == block_count{6});
  CHECK(h.held(b) == held_as(b, reason::no_free_blocks, 5, 4));
}

TEST_CASE("those that run always have room and are never preempted") {
  hand_tick h{hand_config(6)};
  sequence& a =
      h.runs(1, {.prompt = 7, .output = 2, .computed = 8, .max_tokens = 5, .reserved = 12});
  sequence& b =
      h.runs(2, {.prompt = 7, .output = 2, .computed = 8, .max_tokens = 5, .reserved = 12});
  h.decide(rule);
  CHECK(h.ran(a) == 1);
  CHECK(h.ran(b) == 1);
  CHECK(h.record.preempted.empty());
}

TEST_CASE("who has outgrown the whole pool ends instead of waiting for ever") {
  hand_tick h{hand_config(2)};
  sequence& a = h.runs(1, {.prompt = 7, .output = 2, .computed = 8, .reserved = 8});
  h.decide(rule);
  CHECK(h.t->exhausted == std::vector<sequence*>{&a});
}
