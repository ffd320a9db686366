// What is known and what is not, by hand.
#include "core/prefix_index.hpp"

#include "tests/support/catch.hpp"

using namespace octavo;

namespace {

block_key key(std::uint64_t k) {
  return {k, 0};
}

std::vector<block_id> hits_of(const prefix_index& index, std::vector<block_key> keys,
                              std::vector<token_id> tokens = {}) {
  std::vector<block_id> hits;
  index.match(keys, tokens, hits);
  return hits;
}

using blocks = std::vector<block_id>;

}  // namespace

TEST_CASE("a match is the longest known run of leading blocks") {
  prefix_index index{token_count{2}};
  index.publish({key(1), block_id{7}}, {});
  index.publish({key(3), block_id{9}}, {});
  CHECK(hits_of(index, {key(1), key(2), key(3)}) == blocks{block_id{7}});
  index.publish({key(2), block_id{8}}, {});
  CHECK(hits_of(index, {key(1), key(2), key(3)}) == blocks{block_id{7}, block_id{8}, block_id{9}});
  CHECK(hits_of(index, {key(4)}).empty());
}

TEST_CASE("a collision of keys with different tokens is no hit") {
  prefix_index index{token_count{2}};
  const std::vector<token_id> stored{5, 6};
  index.publish({key(1), block_id{3}}, stored);
  CHECK(hits_of(index, {key(1)}, {5, 6}) == blocks{block_id{3}});
  CHECK(hits_of(index, {key(1)}, {5, 7}).empty());
}

TEST_CASE("where one side knows no tokens, tokens are never taken as equal") {
  prefix_index index{token_count{2}};
  index.publish({key(1), block_id{3}}, {});
  CHECK(hits_of(index, {key(1)}, {0, 1}).empty());
}

TEST_CASE("of equal content the first block stays the known one") {
  prefix_index index{token_count{2}};
  index.publish({key(1), block_id{3}}, {});
  index.publish({key(1), block_id{4}}, {});
  CHECK(hits_of(index, {key(1)}) == blocks{block_id{3}});
  CHECK(index.size() == 1);
}

TEST_CASE("evicting another block with the same key forgets nothing") {
  prefix_index index{token_count{2}};
  index.publish({key(1), block_id{3}}, {});
  index.evict({key(1), block_id{4}});
  CHECK(hits_of(index, {key(1)}) == blocks{block_id{3}});
  index.evict({key(1), block_id{3}});
  CHECK(hits_of(index, {key(1)}).empty());
  CHECK(index.size() == 0);
}

TEST_CASE("a batch's changes apply in order before its candidates are answered") {
  prefix_index index{token_count{2}};
  index.publish({key(1), block_id{3}}, {});
  match_batch batch;
  batch.changes.push_back({{key(1), block_id{3}}, 0, false, true});
  batch.changes.push_back({{key(1), block_id{3}}, 2, true, false});
  batch.tokens = {8, 9, 1, 2};  // the candidate's, then the publication's
  batch.keys = {key(1)};
  match_batch::candidate mismatched{0, 0, 1, 0, true, 0, 0};
  match_batch::candidate equal{1, 0, 1, 2, true, 0, 0};
  batch.candidates = {mismatched, equal};
  index.answer(batch);
  CHECK(batch.candidates[0].hits_count == 0);
  REQUIRE(batch.candidates[1].hits_count == 1);
  CHECK(batch.hits[batch.candidates[1].hits_begin] == block_id{3});
}
