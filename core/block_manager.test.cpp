// Block tables, the free list's order, forks, windows and the self-check, by
// plans written out by hand.
#include "core/block_manager.hpp"

#include <stdexcept>

#include "tests/support/catch.hpp"

using namespace octavo;

namespace {

engine_config pool_of(std::int32_t blocks) {
  engine_config config;
  config.block_size = token_count{4};
  config.num_blocks = block_count{blocks};
  return config;
}

// Builds one plan; `key(k)` names distinct contents.
struct plan_builder {
  step plan;

  explicit plan_builder(std::uint64_t id, std::int32_t expected_free) {
    plan.id = step_id{id};
    plan.expected_free = block_count{expected_free};
  }
  plan_builder& release(std::uint32_t slot) {
    plan.releases.push_back({slot});
    return *this;
  }
  plan_builder& admit(std::uint32_t slot, std::vector<block_id> hits = {}) {
    admission_command command;
    command.slot = slot;
    command.hits_begin = static_cast<std::uint32_t>(plan.hits.size());
    command.hits_count = static_cast<std::uint32_t>(hits.size());
    command.query_tokens = token_count{100};
    plan.hits.insert(plan.hits.end(), hits.begin(), hits.end());
    plan.admissions.push_back(command);
    return *this;
  }
  plan_builder& hold(std::uint32_t slot, std::int32_t tokens, std::int32_t position = 0) {
    sequence_work work;
    work.slot = slot;
    work.hold_tokens = token_count{tokens};
    work.window_position = token_count{position};
    plan.work.push_back(work);
    return *this;
  }
  plan_builder& name(std::uint32_t slot, std::uint32_t first, std::vector<block_key> keys) {
    plan.namings.push_back({0, slot, first, static_cast<std::uint32_t>(keys.size()),
                            static_cast<std::uint32_t>(plan.keys.size()), true});
    plan.keys.insert(plan.keys.end(), keys.begin(), keys.end());
    return *this;
  }
  plan_builder& fork(std::uint32_t parent, std::uint32_t child, std::int32_t shared, bool copy) {
    plan.forks.push_back({parent, child, shared, copy});
    return *this;
  }
  step commit(block_manager& blocks) {
    blocks.commit(plan);
    blocks.check_integrity();
    return plan;
  }
};

block_key key(std::uint64_t k) {
  return {k, ~k};
}

std::vector<block_id> ids(std::initializer_list<std::uint32_t> numbers) {
  std::vector<block_id> out;
  for (const std::uint32_t n : numbers) out.emplace_back(n);
  return out;
}

// Slot 0 computed blocks 0, 1, 2 with keys 10, 11, 12 and gave them back.
block_manager with_three_cached(std::int32_t pool) {
  block_manager blocks{pool_of(pool)};
  plan_builder{1, pool - 3}
      .admit(0)
      .hold(0, 12)
      .name(0, 0, {key(10), key(11), key(12)})
      .commit(blocks);
  plan_builder{2, pool}.release(0).commit(blocks);
  return blocks;
}

}  // namespace

TEST_CASE("a table grows by whole blocks and gives them all back") {
  block_manager blocks{pool_of(8)};
  CHECK(blocks.free() == block_count{8});
  CHECK(plan_builder{1, 6}.admit(0).hold(0, 5).commit(blocks).new_blocks == ids({0, 1}));
  CHECK(plan_builder{2, 6}.hold(0, 8).commit(blocks).new_blocks.empty());
  CHECK(plan_builder{3, 5}.hold(0, 9).commit(blocks).new_blocks == ids({2}));
  CHECK(blocks.table(0, 0) == ids({0, 1, 2}));
  plan_builder{4, 8}.release(0).commit(blocks);
  CHECK(blocks.free() == block_count{8});
}

TEST_CASE("the tail of a request is evicted before its head, and each eviction is reported") {
  block_manager blocks = with_three_cached(3);
  const step plan = plan_builder{3, 1}.admit(1).hold(1, 8).commit(blocks);
  CHECK(plan.new_blocks == ids({2, 1}));
  REQUIRE(plan.evicted.size() == 2);
  CHECK(plan.evicted[0] == keyed_block{key(12), block_id{2}});
  CHECK(plan.evicted[1] == keyed_block{key(11), block_id{1}});
  CHECK(blocks.statistics().evicted_blocks == 2);
}

TEST_CASE("between requests, the one that was given back first is evicted first") {
  block_manager blocks{pool_of(2)};
  plan_builder{1, 0}
      .admit(0)
      .admit(1)
      .hold(0, 4)
      .hold(1, 4)
      .name(0, 0, {key(1)})
      .name(1, 0, {key(2)})
      .commit(blocks);
  plan_builder{2, 1}.release(1).commit(blocks);
  plan_builder{3, 2}.release(0).commit(blocks);
  CHECK(plan_builder{4, 1}.admit(2).hold(2, 4).commit(blocks).new_blocks == ids({1}));
}

TEST_CASE("blocks that hold nothing findable, and unused ones, go before cached ones") {
  block_manager blocks = with_three_cached(5);
  plan_builder{3, 4}.admit(1).hold(1, 4).commit(blocks);  // unnamed: block 3, never used before
  plan_builder{4, 5}.release(1).commit(blocks);
  const step plan = plan_builder{5, 3}.admit(1).hold(1, 8).commit(blocks);
  CHECK(plan.new_blocks == ids({3, 4}));
  CHECK(plan.evicted.empty());
}

TEST_CASE("a touched block comes back from the free list and is not evicted") {
  block_manager blocks = with_three_cached(3);
  const step plan = plan_builder{3, 0}.admit(1, ids({0, 1})).hold(1, 12).commit(blocks);
  CHECK(plan.new_blocks == ids({2}));
  CHECK(plan.evicted.size() == 1);
  CHECK(blocks.table(1, 0) == ids({0, 1, 2}));
  CHECK(blocks.statistics().query_tokens == 200);  // both admissions asked for 100
  CHECK(blocks.statistics().hit_tokens == 8);
}

TEST_CASE("hits are touched before any block is taken, by forks too") {
  block_manager blocks{pool_of(4)};
  plan_builder{1, 2}.admit(0).hold(0, 6).name(0, 0, {key(1)}).commit(blocks);
  plan_builder{2, 0}.admit(1).hold(1, 8).name(1, 0, {key(2), key(3)}).commit(blocks);
  plan_builder{3, 2}.release(1).commit(blocks);
  // Blocks 3 (key 3), then 2 (key 2) are next to go; 3 is also a hit.
  const step plan = plan_builder{4, 0}.fork(0, 2, 1, true).admit(3, ids({3})).commit(blocks);
  CHECK(plan.new_blocks == ids({2}));
  CHECK(blocks.table(3, 0) == ids({3}));
}

TEST_CASE("a shared block stays until its last holder gives it back") {
  block_manager blocks = with_three_cached(4);
  plan_builder{3, 2}.admit(1, ids({0, 1})).commit(blocks);
  plan_builder{4, 2}.admit(2, ids({0, 1})).commit(blocks);
  plan_builder{5, 2}.release(1).commit(blocks);
  plan_builder{6, 4}.release(2).commit(blocks);
}

TEST_CASE("a fork shares the full blocks and copies the partial one") {
  block_manager blocks{pool_of(6)};
  plan_builder{1, 3}.admit(0).hold(0, 10).commit(blocks);
  const step plan = plan_builder{2, 2}.fork(0, 1, 2, true).commit(blocks);
  REQUIRE(plan.copies.size() == 1);
  CHECK(plan.copies[0].from == block_id{2});
  CHECK(plan.copies[0].to == block_id{3});
  CHECK(blocks.table(1, 0) == ids({0, 1, 3}));
  plan_builder{3, 3}.release(0).commit(blocks);  // only the parent's own copy becomes free
  plan_builder{4, 6}.release(1).commit(blocks);
}

TEST_CASE("blocks out of the window go back while the sequence runs") {
  engine_config config = pool_of(6);
  config.enable_prefix_caching = false;
  config.kv_groups = {kv_group{}, kv_group{token_count{6}}};
  config.num_blocks = block_count{7};
  block_manager blocks{config};
  plan_builder{1, 1}.admit(0).hold(0, 12).commit(blocks);
  // At position 12 the window reads 7 .. 12, so its block 0 goes and block 3
  // comes. The full group takes the last free block, the window its own old one.
  const step plan = plan_builder{2, 0}.hold(0, 16, 12).commit(blocks);
  CHECK(plan.new_blocks.size() == 2);
  CHECK(blocks.table(0, 0).size() == 4);
  CHECK(blocks.table(0, 1).size() == 3);
  CHECK(plan.new_blocks[0] == block_id{3});
}

TEST_CASE("a plan that needs more blocks than are free is a programming error") {
  block_manager blocks{pool_of(2)};
  plan_builder plan{1, 0};
  plan.admit(0).hold(0, 12);
  CHECK_THROWS_AS(blocks.commit(plan.plan), std::logic_error);
}

TEST_CASE("a wrong expectation of free blocks is noticed at once") {
  block_manager blocks{pool_of(4)};
  plan_builder plan{1, 4};
  plan.admit(0).hold(0, 4);
  CHECK_THROWS_WITH(blocks.commit(plan.plan), Catch::Matchers::ContainsSubstring("3 free") &&
                                                  Catch::Matchers::ContainsSubstring("expects 4"));
}

TEST_CASE("confirm cuts hits at the first block that is not what it was") {
  block_manager blocks = with_three_cached(3);
  const auto confirmed = [&](std::uint64_t booked, std::vector<block_key> keys) {
    match_batch batch;
    batch.booked = step_id{booked};
    batch.keys = std::move(keys);
    batch.hits = ids({0, 1, 2});
    match_batch::candidate c;
    c.keys_count = 3;
    c.hits_count = 3;
    batch.candidates.push_back(c);
    blocks.confirm(batch);
    return batch.candidates[0].hits_count;
  };
  CHECK(confirmed(2, {key(10), key(11), key(12)}) == 3);
  CHECK(confirmed(2, {key(10), key(99), key(12)}) == 1);
  CHECK(confirmed(0, {key(10), key(11), key(12)}) == 0);  // its step's result is not known yet
  plan_builder{3, 2}.admit(1).hold(1, 4).commit(blocks);  // evicts block 2
  CHECK(confirmed(3, {key(10), key(11), key(12)}) == 2);
}
