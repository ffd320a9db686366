// Continuous batching, one hand-cranked tick at a time. Blocks hold 4 tokens.
#include "core/policy/continuous.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/hand_tick.hpp"

using namespace octavo;
using namespace octavo::test;

namespace {

constexpr auto rule = policy_kind::continuous;
using ids = std::vector<std::uint64_t>;

// A decode whose next token needs a new block, and one whose does not.
constexpr hand_sequence at_block_end{.prompt = 7, .output = 2, .computed = 8};
constexpr hand_sequence within_block{.prompt = 5, .output = 1, .computed = 5};

}  // namespace

TEST_CASE("those that run are served first, the rest of the budget goes to the queue in chunks") {
  hand_tick h{hand_config(100, 10)};
  sequence& a = h.runs(1, within_block);
  sequence& b = h.waits(2, {.prompt = 20});
  sequence& c = h.waits(3, {.prompt = 3});
  h.decide(rule);
  CHECK(h.order() == ids{1, 2});
  CHECK(h.ran(a) == 1);
  CHECK(h.plan.work[0].decode);
  CHECK(h.plan.work[0].samples == 1);
  CHECK(h.ran(b) == 9);
  CHECK(h.plan.work[1].samples == 0);
  CHECK(h.held(b) == held_as(b, reason::chunked_to_budget, 9, 11));
  CHECK(h.held(c) == held_as(c, reason::no_budget));
  CHECK(h.t->budget == token_count{0});
  CHECK(h.ledger.used() == block_count{2 + 3});
}

TEST_CASE("a running prefill goes on where it stopped and samples when it is complete") {
  hand_tick h{hand_config(100)};
  sequence& a = h.runs(1, {.prompt = 14, .computed = 8});
  h.decide(rule);
  CHECK(h.ran(a) == 6);
  CHECK(h.plan.work[0].first_position == token_count{8});
  CHECK(h.plan.work[0].samples == 1);
  CHECK_FALSE(h.plan.work[0].decode);
}

TEST_CASE("a long prefill gets no more than the threshold, running or not") {
  engine_config config = hand_config(100, 20);
  config.long_prefill_token_threshold = token_count{5};
  hand_tick h{config};
  sequence& a = h.runs(1, {.prompt = 30, .computed = 8});
  sequence& b = h.waits(2, {.prompt = 30});
  sequence& c = h.waits(3, {.prompt = 3});
  h.decide(rule);
  CHECK(h.ran(a) == 5);
  CHECK(h.ran(b) == 5);
  CHECK(h.ran(c) == 3);
}

TEST_CASE("without chunked prefill a prompt waits until all of it fits the budget") {
  engine_config config = hand_config(100);
  config.enable_chunked_prefill = false;
  hand_tick h{config};
  h.runs(1, within_block);
  sequence& b = h.waits(2, {.prompt = 8});
  sequence& c = h.waits(3, {.prompt = 2});
  h.decide(rule);
  CHECK(h.ran(b) == -1);
  CHECK(h.ran(c) == -1);
  CHECK(h.held(b) == held_as(b, reason::no_budget));
}

TEST_CASE("with all seats taken nobody is considered, and the numbers say so") {
  engine_config config = hand_config(100);
  config.max_num_seqs = 1;
  hand_tick h{config};
  h.runs(1, within_block);
  sequence& b = h.waits(2, {});
  h.decide(rule);
  CHECK(h.wanted == 0);
  CHECK(h.ran(b) == -1);
  REQUIRE(h.t->closed);
  CHECK(h.t->closed->why == reason::batch_full);
  CHECK(h.t->closed->a == 1);
  CHECK(h.t->closed->b == 1);
}

TEST_CASE("samples that will be forked have their seats from the start") {
  hand_tick h{hand_config(100)};
  sequence& a = h.waits(1, {});
  a.forks_wanted = 2;
  sequence& b = h.waits(2, {});
  b.forks_wanted = 1;
  h.decide(rule);
  CHECK(h.ran(a) == 4);
  CHECK(h.plan.work[0].samples == 3);
  CHECK(h.held(b) == held_as(b, reason::batch_full, 3, 4));
}

TEST_CASE("a head that lacks memory stops those behind it, with need and free as numbers") {
  hand_tick h{hand_config(6, 50)};
  h.runs(1, within_block);
  sequence& b = h.waits(2, {.prompt = 20});
  sequence& c = h.waits(3, {.prompt = 2});
  h.decide(rule);
  CHECK(h.held(b) == held_as(b, reason::no_free_blocks, 5, 4));
  CHECK(h.ran(c) == -1);
  CHECK_FALSE(h.held(c));
}

TEST_CASE("a prompt must fit whole, or only its first chunk where that is allowed") {
  for (const bool whole : {true, false}) {
    engine_config config = hand_config(6);
    config.scheduler_reserve_full_isl = whole;
    hand_tick h{config};
    h.runs(1, within_block);
    sequence& b = h.waits(2, {.prompt = 20});
    h.decide(rule);
    CHECK(h.ran(b) == (whole ? -1 : 7));
  }
}

TEST_CASE("the watermark holds back an admission beside others, not into an idle engine") {
  engine_config config = hand_config(7, 50);
  config.watermark = block_count{2};
  hand_tick beside{config};
  beside.runs(1, within_block);
  sequence& b = beside.waits(2, {.prompt = 16});
  beside.decide(rule);
  CHECK(beside.held(b) == held_as(b, reason::watermark_hold, 4, 5));
  hand_tick alone{config};
  sequence& c = alone.waits(2, {.prompt = 28});
  alone.decide(rule);
  CHECK(alone.ran(c) == 28);
}

TEST_CASE("hits shorten the first step, and cost a free block only if nobody holds them") {
  hand_tick h{hand_config(10, 50)};
  block_account holder;
  const std::vector<block_id> shared{block_id{0}, block_id{1}};
  h.ledger.touch(holder, shared);
  sequence& b = h.waits(2, {.prompt = 15}, {block_id{0}, block_id{1}, block_id{5}});
  h.decide(rule);
  CHECK(h.ran(b) == 3);
  CHECK(h.plan.work[0].first_position == token_count{12});
  CHECK(h.record.admitted.at(0) ==
        admitted_record{name_of(b), reason::prefix_hit, token_count{12}});
  CHECK(h.ledger.used() == block_count{4});  // 2 held before, block 5, one new
  CHECK(b.cached_tokens == token_count{12});
}

TEST_CASE("two candidates with one cached prefix pay for it once") {
  hand_tick h{hand_config(5, 50)};
  sequence& b = h.waits(2, {.prompt = 12}, {block_id{0}, block_id{1}});
  sequence& c = h.waits(3, {.prompt = 12}, {block_id{0}, block_id{1}});
  h.decide(rule);
  CHECK(h.ran(b) == 4);
  CHECK(h.ran(c) == 4);
  CHECK(h.ledger.used() == block_count{4});
}

TEST_CASE("who cannot grow preempts the youngest, and nobody is let in that step") {
  hand_tick h{hand_config(6)};
  sequence& a = h.runs(1, at_block_end);
  sequence& b = h.runs(2, within_block);
  sequence& c = h.runs(3, within_block);
  h.waits(4, {});
  h.decide(rule);
  CHECK(h.order() == ids{1, 2});
  CHECK(h.record.preempted == std::vector{preempted_record{name_of(c), name_of(a)}});
  CHECK(c.state == sequence_state::waiting);
  CHECK(c.preemptions == 1);
  CHECK(c.computed_tokens == token_count{0});
  CHECK(h.plan.preemptions.size() == 1);
  CHECK(h.wanted == 0);
  REQUIRE(h.t->closed);
  CHECK(h.t->closed->why == reason::preemption_hold);
  CHECK(h.running == std::vector<sequence*>{&a, &b});
}

TEST_CASE("the less urgent is preempted before the younger") {
  hand_tick h{hand_config(6)};
  h.runs(1, {.prompt = 5, .output = 1, .computed = 5, .priority = 5});
  sequence& b = h.runs(2, at_block_end);
  h.runs(3, within_block);
  h.decide(rule);
  CHECK(h.order() == ids{2, 3});
  CHECK(h.record.preempted.at(0).victim.request == request_id{1});
  CHECK(h.ran(b) == 1);
}

TEST_CASE("a victim that was scheduled in this step gives its budget back and leaves the plan") {
  hand_tick h{hand_config(5, 4)};
  sequence& low = h.runs(1, {.prompt = 7, .computed = 4, .priority = 9});
  sequence& high = h.runs(2, at_block_end);
  h.occupy(1);
  h.decide(rule);  // low runs first and takes the last free block, which high needs
  CHECK(h.ran(low) == -1);
  CHECK(h.ran(high) == 1);
  CHECK(h.order() == ids{2});
  CHECK(h.t->budget == token_count{3});
  CHECK(h.record.ran.size() == 1);
  CHECK_FALSE(h.held(low));
  CHECK(low.steps_in_flight == 0);
  CHECK(low.pending_tokens == token_count{0});
}

TEST_CASE("after a victim has left the list, each of the rest is considered exactly once") {
  hand_tick h{hand_config(7, 8)};
  h.runs(1, {.prompt = 5, .output = 1, .computed = 5, .priority = 9});
  h.runs(2, at_block_end);
  h.runs(3, within_block);
  h.occupy(1);
  h.decide(rule);
  CHECK(h.order() == ids{2, 3});
  CHECK(h.t->budget == token_count{6});
}

TEST_CASE("the youngest that cannot grow gives way itself") {
  hand_tick h{hand_config(4)};
  h.runs(1, within_block);
  sequence& b = h.runs(2, at_block_end);
  h.decide(rule);
  CHECK(h.order() == ids{1});
  CHECK(h.record.preempted == std::vector{preempted_record{name_of(b), name_of(b)}});
}

TEST_CASE("what the whole pool cannot hold ends, unless a step in flight may end it") {
  hand_tick h{hand_config(2)};
  sequence& a = h.runs(1, at_block_end);
  h.decide(rule);
  CHECK(h.plan.work.empty());
  CHECK(h.t->exhausted == std::vector<sequence*>{&a});
  CHECK(h.ledger.used() == block_count{0});

  hand_tick flying{hand_config(2)};
  sequence& b = flying.runs(1, {.prompt = 7, .output = 1, .computed = 8, .in_flight = 1});
  flying.decide(rule);
  CHECK(flying.plan.empty());
  CHECK(flying.t->exhausted.empty());
  CHECK(b.state == sequence_state::running);
}

TEST_CASE("after enough preemptions a request reserves its worst case and is spared") {
  engine_config config = hand_config(20, 50);
  config.max_preemptions = 2;
  hand_tick h{config};
  sequence& a = h.waits(1, {.prompt = 10, .max_tokens = 20, .preemptions = 2});
  h.decide(rule);
  CHECK(a.reserved_tokens == token_count{30});
  CHECK(h.ledger.used() == block_count{8});
  CHECK(h.record.admitted.at(0).why == reason::resumed);

  hand_tick later{hand_config(5)};
  sequence& old = later.runs(1, at_block_end);
  later.runs(2, {.prompt = 5, .output = 1, .computed = 5, .reserved = 12});
  later.decide(rule);  // only the requester itself is left to take from
  CHECK(later.record.preempted == std::vector{preempted_record{name_of(old), name_of(old)}});
  CHECK(later.order() == ids{2});
}

TEST_CASE("a reservation is never larger than the pool") {
  engine_config config = hand_config(6, 50);
  config.max_preemptions = 0;
  hand_tick h{config};
  sequence& a = h.waits(1, {.prompt = 10, .max_tokens = 100});
  h.decide(rule);
  CHECK(a.reserved_tokens == token_count{24});
  CHECK(h.ran(a) == 10);
}

TEST_CASE("with contiguous memory each sequence takes room for the longest context") {
  engine_config config = hand_config(20, 50);
  config.layout = kv_layout::contiguous;
  config.max_model_len = token_count{32};
  hand_tick h{config};
  sequence& a = h.waits(1, {.max_tokens = 8});
  sequence& b = h.waits(2, {.max_tokens = 8});
  sequence& c = h.waits(3, {.max_tokens = 8});
  h.decide(rule);
  CHECK(h.ran(a) == 4);
  CHECK(h.ran(b) == 4);
  CHECK(h.ledger.used() == block_count{16});
  CHECK(h.held(c) == held_as(c, reason::no_free_blocks, 8, 4));
}

TEST_CASE("who waits for its last token in flight runs no more") {
  hand_tick h{hand_config(20)};
  sequence& a =
      h.runs(1, {.prompt = 4, .output = 1, .computed = 5, .max_tokens = 2, .in_flight = 1});
  h.decide(rule);
  CHECK(h.ran(a) == -1);
}
