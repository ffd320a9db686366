// Following plans: tables and tokens by slot, in cases worked out by hand.
#include "model/generation/slot_table.hpp"

#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;
using octavo::kv_group;

namespace {

using blocks = std::vector<block_id>;
using ids = std::vector<token_id>;

blocks make_blocks(std::initializer_list<std::uint32_t> numbers) {
  blocks out;
  for (const std::uint32_t number : numbers) out.emplace_back(number);
  return out;
}

/// Admits a sequence of `tokens` to `slot` with hits, as if its table had `fresh` too.
step admission(std::uint32_t slot, const ids& tokens, std::int32_t prompt, const blocks& hits,
               const blocks& fresh) {
  step plan;
  admission_command command;
  command.slot = slot;
  command.request = request_id{77};
  command.query_tokens = token_count{static_cast<std::int32_t>(tokens.size())};
  command.prompt_tokens = token_count{prompt};
  command.end_tokens = token_count{100};
  command.hits_count = static_cast<std::uint32_t>(hits.size());
  plan.admissions.push_back(command);
  plan.hits = hits;
  plan.admitted_tokens = tokens;
  plan.new_blocks = fresh;
  plan.table_changes.push_back({slot, 0, 0, 0, static_cast<std::uint32_t>(fresh.size())});
  return plan;
}

const std::vector<kv_group> one_group{kv_group{}};

}  // namespace

TEST_CASE("an admitted sequence has its tokens, its hits and then its new blocks") {
  slot_table table{one_group};
  table.follow(admission(3, {5, 6, 7, 8}, 3, make_blocks({40, 41}), make_blocks({9})));
  const slot& state = table.at(3);
  CHECK(state.tables[0] == make_blocks({40, 41, 9}));
  CHECK(state.tokens == ids{5, 6, 7, 8});
  CHECK(state.prompt_tokens == 3);
  CHECK(state.end_tokens == 100);
  CHECK(state.request == request_id{77});
}

TEST_CASE("several admissions of a plan take their own parts of its arrays") {
  step plan = admission(0, {1, 2}, 2, make_blocks({10}), make_blocks({20}));
  const step other = admission(1, {3, 4, 5}, 3, make_blocks({11, 12}), make_blocks({21}));
  plan.admissions.push_back(other.admissions[0]);
  plan.admissions[1].tokens_begin = 2;
  plan.admissions[1].hits_begin = 1;
  plan.admitted_tokens.insert(plan.admitted_tokens.end(), {3, 4, 5});
  plan.hits = make_blocks({10, 11, 12});
  plan.new_blocks = make_blocks({20, 21});
  plan.table_changes.push_back({1, 0, 0, 1, 1});
  slot_table table{one_group};
  table.follow(plan);
  CHECK(table.at(0).tokens == ids{1, 2});
  CHECK(table.at(0).tables[0] == make_blocks({10, 20}));
  CHECK(table.at(1).tokens == ids{3, 4, 5});
  CHECK(table.at(1).tables[0] == make_blocks({11, 12, 21}));
}

TEST_CASE("a slot that is given out again keeps nothing of its last sequence") {
  slot_table table{one_group};
  table.follow(admission(0, {1, 2, 3}, 3, {}, make_blocks({4, 5})));
  table.follow(admission(0, {9}, 1, {}, make_blocks({6})));
  CHECK(table.at(0).tokens == ids{9});
  CHECK(table.at(0).tables[0] == make_blocks({6}));
}

TEST_CASE("blocks behind a window leave the front, and the first entry moves on") {
  // A logical block of the second group takes three blocks of the pool.
  slot_table table{{kv_group{}, kv_group{token_count{32}, 3}}};
  table.follow(admission(0, {1}, 1, {}, make_blocks({1})));
  step grow;
  grow.new_blocks = make_blocks({10, 11, 12, 13, 14, 15});
  grow.table_changes.push_back({0, 1, 0, 0, 6});
  table.follow(grow);
  step move;
  move.new_blocks = make_blocks({16, 17, 18});
  move.table_changes.push_back({0, 1, 3, 0, 3});
  table.follow(move);
  CHECK(table.at(0).tables[1] == make_blocks({13, 14, 15, 16, 17, 18}));
  CHECK(table.at(0).first[1] == 1);
  CHECK(table.at(0).tables[0] == make_blocks({1}));
  CHECK(table.at(0).first[0] == 0);
}

TEST_CASE("a fork shares the prompt's full blocks and begins with a token of its own") {
  slot_table table{one_group};
  ids prompt(20, 3);
  table.follow(admission(0, prompt, 20, {}, make_blocks({7, 8})));
  table.at(0).tokens.push_back(50);  // the first sample's first token
  step plan;
  plan.forks.push_back({.parent_slot = 0, .child_slot = 6, .shared_blocks = 1, .copy_last = true});
  plan.new_blocks = make_blocks({9});
  plan.table_changes.push_back({6, 0, 0, 0, 1});
  sequence_work work;
  work.slot = 6;
  work.sample = 2;
  work.first_position = token_count{20};
  work.count = token_count{1};
  plan.work.push_back(work);
  plan.tokens = {51};
  table.follow(plan);
  const slot& child = table.at(6);
  CHECK(child.tables[0] == make_blocks({7, 9}));
  CHECK(child.tokens.size() == 21);
  CHECK(child.tokens.back() == 51);
  CHECK(child.prompt_tokens == 20);
  CHECK(child.sample == 2);
  CHECK(child.request == request_id{77});
  CHECK(table.at(0).tokens.back() == 50);
}

TEST_CASE("tokens that were sampled here are not taken from a plan made before") {
  slot_table table{one_group};
  table.follow(admission(0, {1, 2}, 2, {}, make_blocks({4})));
  table.at(0).tokens.push_back(30);
  step ahead;
  sequence_work work;
  work.first_position = token_count{2};
  work.count = token_count{1};
  ahead.work.push_back(work);
  ahead.tokens = {-1};  // not known when it was planned
  table.follow(ahead);
  CHECK(table.at(0).tokens == ids{1, 2, 30});
}
