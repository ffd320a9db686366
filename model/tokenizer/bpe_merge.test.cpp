// Merging against its definition, carried out naively.
#include "model/tokenizer/bpe_merge.hpp"

#include <random>

#include "tests/support/catch.hpp"

namespace octavo::model {
namespace {

using ids = std::vector<token_id>;

ids merged(const merge_table& rules, const ids& symbols) {
  bpe_merger merger(rules);
  ids out;
  merger.merge(symbols, out);
  return out;
}

/// The definition, word for word: again and again the lowest rank, leftmost first.
ids merged_by_definition(const merge_table& rules, ids symbols) {
  for (;;) {
    const merge_rule* best = nullptr;
    std::size_t where = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const merge_rule* rule = rules.find(symbols[i], symbols[i + 1]);
      if (rule != nullptr && (best == nullptr || rule->rank < best->rank)) {
        best = rule;
        where = i;
      }
    }
    if (best == nullptr) return symbols;
    symbols[where] = best->result;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(where) + 1);
  }
}

}  // namespace

TEST_CASE("a merge table finds what was put in, and the later of two rules") {
  merge_table rules(2);
  for (token_id i = 0; i < 1000; ++i) {
    rules.insert(i, i + 1, {static_cast<std::uint32_t>(i), i * 2});
  }
  rules.insert(7, 8, {5000, 9});
  CHECK(rules.size() == 1000);
  CHECK(rules.find(999, 1000)->result == 1998);
  CHECK(rules.find(7, 8)->rank == 5000);
  CHECK(rules.find(8, 7) == nullptr);
}

TEST_CASE("the lowest rank merges first") {
  merge_table rules;
  rules.insert(1, 2, {1, 12});
  rules.insert(2, 3, {0, 23});
  CHECK(merged(rules, {1, 2, 3}) == ids{1, 23});
}

TEST_CASE("of equal ranks the leftmost merges first") {
  merge_table rules;
  rules.insert(1, 1, {0, 11});
  CHECK(merged(rules, {1, 1, 1}) == ids{11, 1});
  CHECK(merged(rules, ids(101, 1)) == [] {
    ids wanted(50, 11);
    wanted.push_back(1);
    return wanted;
  }());
}

TEST_CASE("short and long sequences merge as the definition says") {
  std::mt19937 random(3);
  const auto below = [&](int limit) {
    return std::uniform_int_distribution<int>(0, limit - 1)(random);
  };
  for (int round = 0; round < 300; ++round) {
    merge_table rules;
    // Several rules share a rank, as with equal scores in a SentencePiece model. Each
    // has a result of its own, larger than its sides, so that merging ends.
    for (token_id result = 4; result < 60; ++result) {
      rules.insert(below(result), below(result), {static_cast<std::uint32_t>(below(30)), result});
    }
    for (const int length : {0, 1, 2, 5, 48, 49, 50, 200}) {
      ids symbols;
      for (int i = 0; i < length; ++i) symbols.push_back(below(4));
      CHECK(merged(rules, symbols) == merged_by_definition(rules, symbols));
    }
  }
}

TEST_CASE("a merger can be used again") {
  merge_table rules;
  rules.insert(1, 2, {0, 3});
  bpe_merger merger(rules);
  ids out;
  merger.merge(ids{1, 2, 1}, out);
  merger.merge(ids(60, 2), out);
  merger.merge(ids{}, out);
  merger.merge(ids{1, 2}, out);
  CHECK(out.size() == 2 + 60 + 1);
  CHECK(out.back() == 3);
}

}  // namespace octavo::model
