// The planner: what items cover, how even they are, what bounds them.
#include "gpu/kernels/paged_attention/plan.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include "core/error.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::gpu;
using Catch::Matchers::ContainsSubstring;

namespace {

attention_shape shape_of(int kv_heads, int group) {
  attention_shape shape;
  shape.kv_heads = kv_heads;
  shape.heads = kv_heads * group;
  shape.head_dim = 128;
  return shape;
}

struct read_plan {
  plan_counts counts;
  std::vector<attention_item> narrow, wide;
  std::vector<merge_item> merges;
};

read_plan plan_of(attention_planner& planner, const std::vector<attention_sequence>& sequences) {
  const plan_capacity& capacity = planner.capacity();
  std::vector<std::byte> bytes(capacity.bytes(), std::byte{0x5a});
  read_plan plan;
  plan.counts = planner.plan(sequences, bytes);
  const auto read = [&](auto& entries, int n, std::size_t offset) {
    entries.resize(static_cast<std::size_t>(n));
    if (n > 0)
      std::memcpy(entries.data(), bytes.data() + offset, entries.size() * sizeof(entries[0]));
  };
  read(plan.narrow, capacity.narrow, 0);
  read(plan.wide, capacity.wide, capacity.wide_offset());
  read(plan.merges, capacity.merges, capacity.merges_offset());
  return plan;
}

std::vector<attention_sequence> decodes(const std::vector<int>& contexts) {
  std::vector<attention_sequence> sequences;
  int table = 0;
  for (const int context : contexts) {
    const int row = static_cast<int>(sequences.size());
    sequences.push_back({row, 1, context, table, 0});
    table += context / kv_page_tokens + 1;
  }
  return sequences;
}

/// How often each (packed row, key) of a sequence is worked on.
using coverage = std::map<std::pair<int, int>, int>;

void cover(const std::vector<attention_item>& items, int count, int first_row, coverage& seen) {
  for (int i = 0; i < count; ++i) {
    const attention_item& item = items[static_cast<std::size_t>(i)];
    if (item.first_row != first_row) continue;
    for (int p = item.first_packed; p < item.first_packed + item.packed; ++p) {
      for (int key = item.kv_begin; key < item.kv_end; ++key) ++seen[{p, key}];
    }
  }
}

void check_covers(const read_plan& plan, const attention_sequence& s, int group, int window) {
  coverage seen;
  cover(plan.narrow, plan.counts.narrow, s.first_row, seen);
  cover(plan.wide, plan.counts.wide, s.first_row, seen);
  bool once = true;
  for (const auto& [what, times] : seen) once = once && times == 1;
  CHECK(once);
  bool all = true;
  for (int p = 0; p < s.rows * group; ++p) {
    const int position = s.first_position + p / group;
    for (int key = window > 0 ? std::max(0, position - window + 1) : 0; key <= position; ++key) {
      all = all && seen.contains({p, key});
    }
  }
  CHECK(all);
}

void check_merges(const read_plan& plan, const plan_capacity& capacity) {
  std::map<int, int> rows;  // of partial results, by where they begin
  for (const auto* items : {&plan.narrow, &plan.wide}) {
    for (const attention_item& item : *items) {
      if (item.packed > 0 && item.partial >= 0) rows[item.partial] = item.packed;
    }
  }
  std::size_t merged = 0;
  for (const merge_item& merge : plan.merges) {
    for (int split = 0; split < merge.splits; ++split) {
      const auto found = rows.find(merge.partial + split * merge.packed);
      REQUIRE(found != rows.end());
      CHECK(found->second == merge.packed);
      CHECK(found->first + found->second <= capacity.partial_rows);
      ++merged;
    }
  }
  CHECK(merged == rows.size());
}

}  // namespace

TEST_CASE("items cover each row's keys exactly once, and merges all partial results") {
  std::mt19937 random(3);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int round = 0; round < 60; ++round) {
    attention_shape shape = shape_of(pick(1, 4), pick(1, 9));
    shape.window = round % 3 == 0 ? pick(1, 700) : 0;
    shape.batch_invariant = round % 4 == 0;
    attention_limits limits{8, 100, pick(1, 30)};
    std::vector<attention_sequence> sequences;
    int row = 0;
    for (int i = pick(1, 8); i > 0; --i) {
      attention_sequence s;
      s.first_row = row;
      s.rows = pick(0, 1) == 0 ? 1 : pick(1, 12);
      s.first_position = pick(0, 2) == 0 ? pick(0, 40) : pick(0, 1500);
      if (shape.window > 0) s.first_block = std::max(0, s.first_position - shape.window + 1) / 16;
      row += s.rows;
      sequences.push_back(s);
    }
    CAPTURE(round, shape.kv_heads, shape.group(), shape.window, shape.batch_invariant);
    attention_planner planner(shape, limits);
    const read_plan plan = plan_of(planner, sequences);
    for (const auto& s : sequences) check_covers(plan, s, shape.group(), shape.window);
    check_merges(plan, planner.capacity());
  }
}

TEST_CASE("one long sequence gives every multiprocessor blocks, in pieces of one size") {
  attention_planner planner(shape_of(8, 4), {1, 1, 132});
  const read_plan plan = plan_of(planner, decodes({131'071}));
  CHECK(plan.counts.narrow * 8 >= 2 * 132 - 8);
  CHECK(plan.counts.narrow * 8 <= 2 * 132 + 8);
  int shortest = 1 << 30;
  int longest = 0;
  for (int i = 0; i < plan.counts.narrow; ++i) {
    const auto& item = plan.narrow[static_cast<std::size_t>(i)];
    CHECK(item.kv_begin % kv_page_tokens == 0);
    shortest = std::min(shortest, item.kv_end - item.kv_begin);
    longest = std::max(longest, item.kv_end - item.kv_begin);
  }
  CHECK(longest - shortest <= kv_page_tokens);
}

TEST_CASE("in a full batch only what is much longer than the rest is split") {
  std::vector<int> contexts(200, 999);
  contexts[17] = 60'000;
  attention_planner planner(shape_of(8, 4), {200, 200, 132});
  const read_plan plan = plan_of(planner, decodes(contexts));
  CHECK(plan.counts.merges == 1);
  CHECK(plan.merges[0].first_row == 17);
  CHECK(plan.narrow[0].first_row == 17);  // the longest items begin first
  CHECK(plan.merges[0].splits >= 8);
}

TEST_CASE("pieces are long enough to merge cheaply once every multiprocessor has work") {
  // 32 sequences x 8 heads are more than 132: pieces of 4 heads then have 271 tokens at
  // least, so that 4 x 130 x 4 x 2 bytes are 3 % of 512 bytes for each.
  attention_planner planner(shape_of(8, 4), {32, 32, 132});
  const read_plan plan = plan_of(planner, decodes(std::vector<int>(32, 4095)));
  for (int i = 0; i < plan.counts.narrow; ++i) {
    const auto& item = plan.narrow[static_cast<std::size_t>(i)];
    CHECK(item.kv_end - item.kv_begin >= 271);
  }
}

TEST_CASE("short sequences are not split") {
  attention_planner planner(shape_of(1, 4), {3, 3, 132});
  CHECK(plan_of(planner, decodes({0, 15, 127})).counts.merges == 0);
}

TEST_CASE("single tokens are narrow, chunks of many rows are wide") {
  attention_planner planner(shape_of(2, 4), {4, 100, 4});
  const read_plan plan =
      plan_of(planner, {{0, 1, 50, 0, 0}, {1, 4, 50, 4, 0}, {5, 5, 50, 8, 0}, {10, 33, 0, 12, 0}});
  CHECK(plan.counts.narrow == 2);    // 4 and 16 packed rows
  CHECK(plan.counts.wide == 1 + 3);  // 20 rows, and 132 in tiles of 64
  CHECK(plan.wide[0].packed + plan.wide[1].packed + plan.wide[2].packed + plan.wide[3].packed ==
        20 + 132);
}

TEST_CASE("a window's keys begin where the oldest row of a tile sees, by its own blocks") {
  attention_shape shape = shape_of(1, 4);
  shape.window = 100;
  attention_planner planner(shape, {1, 1, 4});
  // Position 500 sees 401 to 500; block 25 holds 400 to 415 and is the first in the table.
  const read_plan plan = plan_of(planner, {{0, 1, 500, 7, 25}});
  CHECK(plan.narrow[0].kv_begin == 401);
  CHECK(plan.narrow[0].kv_end == 501);
  CHECK(plan.narrow[0].table == 7 - 25);
}

TEST_CASE("batch-invariant cuts are at fixed positions, or there are none") {
  attention_shape shape = shape_of(2, 4);
  shape.batch_invariant = true;
  attention_planner planner(shape, {3, 3, 40});
  for (const auto& contexts : {std::vector{1300}, std::vector{1300, 5000, 40}}) {
    const read_plan plan = plan_of(planner, decodes(contexts));
    for (int i = 0; i < plan.counts.narrow; ++i) {
      const auto& item = plan.narrow[static_cast<std::size_t>(i)];
      CHECK(item.kv_begin % segment_tokens == 0);
    }
    CHECK(plan.counts.wide == 0);
  }
}

TEST_CASE("entries that are not used are zero") {
  attention_planner planner(shape_of(2, 4), {5, 50, 16});
  const read_plan plan = plan_of(planner, decodes({3}));
  CHECK(plan.counts.narrow == 1);
  for (std::size_t i = 1; i < plan.narrow.size(); ++i) CHECK(plan.narrow[i].packed == 0);
  for (const auto& item : plan.wide) CHECK(item.packed == 0);
  for (const auto& merge : plan.merges) CHECK(merge.splits == 0);
}

TEST_CASE("steps beyond the limits are refused by name") {
  attention_shape shape = shape_of(2, 4);
  shape.window = 64;
  attention_planner planner(shape, {2, 10, 4});
  std::vector<std::byte> out(planner.capacity().bytes());
  const auto refused = [&](std::vector<attention_sequence> sequences) {
    try {
      planner.plan(sequences, out);
    } catch (const input_error& e) {
      return std::string(e.what());
    }
    return std::string("nothing");
  };
  CHECK_THAT(refused({{}, {}, {}}), ContainsSubstring("number of sequences is 3"));
  CHECK_THAT(refused({{0, 0, 0, 0, 0}}), ContainsSubstring("rows of sequence 0 is 0"));
  CHECK_THAT(refused({{0, 11, 0, 0, 0}}), ContainsSubstring("number of rows is 11"));
  CHECK_THAT(refused({{0, 1, -1, 0, 0}}), ContainsSubstring("first_position of sequence 0 is -1"));
  CHECK_THAT(refused({{0, 1, 3, -2, 0}}), ContainsSubstring("table of sequence 0 is -2"));
  // Position 100 sees 37 on, in block 2.
  CHECK_THAT(refused({{0, 1, 100, 0, 3}}), ContainsSubstring("first_block of sequence 0 is 3"));
  CHECK(refused({{0, 1, 100, 0, 2}}) == "nothing");
  out.resize(out.size() - 1);
  CHECK_THAT(refused({{0, 1, 3, 0, 0}}), ContainsSubstring("size of the plan"));
  CHECK_THROWS_WITH(attention_planner(shape, {0, 1, 1}), ContainsSubstring("sequences_max is 0"));
}
