// Prefill first, one hand-cranked tick at a time. Blocks hold 4 tokens.
#include "core/policy/prefill_first.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/hand_tick.hpp"

using namespace octavo;
using namespace octavo::test;

namespace {

constexpr auto rule = policy_kind::prefill_first;
constexpr hand_sequence decode{.prompt = 5, .output = 1, .computed = 5};
using ids = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("while a prompt can be computed nobody decodes") {
  hand_tick h{hand_config(100, 20)};
  h.runs(1, decode);
  h.runs(2, {.prompt = 14, .computed = 8});
  h.waits(3, {.prompt = 10});
  h.decide(rule);
  CHECK(h.order() == ids{2, 3});
}

TEST_CASE("with no prompt to compute, all decode") {
  hand_tick h{hand_config(100)};
  h.runs(1, decode);
  h.runs(2, decode);
  h.decide(rule);
  CHECK(h.order() == ids{1, 2});
}

TEST_CASE("where the head lacks memory the others decode, and it keeps its reason") {
  hand_tick h{hand_config(5)};
  h.runs(1, decode);
  sequence& b = h.waits(2, {.prompt = 16});
  h.decide(rule);
  CHECK(h.order() == ids{1});
  CHECK(h.held(b) == held_as(b, reason::no_free_blocks, 4, 3));
}

TEST_CASE("a decode that cannot grow preempts the youngest") {
  hand_tick h{hand_config(4)};
  h.runs(1, {.prompt = 7, .output = 2, .computed = 8});
  sequence& b = h.runs(2, decode);
  h.decide(rule);
  CHECK(h.order() == ids{1});
  CHECK(h.record.preempted.at(0).victim == name_of(b));
}
