// The scheduler's arithmetic of blocks, by hand.
#include "core/block_ledger.hpp"

#include "tests/support/catch.hpp"

using namespace octavo;

namespace {

engine_config pool_of(std::int32_t blocks) {
  engine_config config;
  config.block_size = token_count{4};
  config.num_blocks = block_count{blocks};
  return config;
}

constexpr token_count at_start{0};

}  // namespace

TEST_CASE("growth is counted in whole blocks beyond what is held") {
  block_ledger ledger{pool_of(10)};
  block_account a;
  CHECK(ledger.growth(a, token_count{5}, at_start) == block_count{2});
  ledger.grow(a, token_count{5}, at_start);
  CHECK(ledger.growth(a, token_count{8}, at_start) == block_count{0});
  CHECK(ledger.growth(a, token_count{9}, at_start) == block_count{1});
  CHECK(ledger.free() == block_count{8});
  CHECK(ledger.release(a) == block_count{2});
  CHECK(ledger.free() == block_count{10});
  CHECK(a.held() == 0);
}

TEST_CASE("a cached block costs a free one only while nobody holds it") {
  block_ledger ledger{pool_of(10)};
  block_account a;
  block_account b;
  const std::vector<block_id> hits{block_id{3}, block_id{4}};
  CHECK(ledger.unheld(hits) == block_count{2});
  ledger.touch(a, hits);
  CHECK(ledger.free() == block_count{8});
  CHECK(ledger.unheld(hits) == block_count{0});
  ledger.touch(b, hits);
  CHECK(ledger.free() == block_count{8});
  CHECK(ledger.shared_references() == 2);
  CHECK(ledger.release(a) == block_count{0});
  CHECK(ledger.release(b) == block_count{2});
  CHECK(ledger.shared_references() == 0);
}

TEST_CASE("naming turns an own block into one that can be shared") {
  block_ledger ledger{pool_of(10)};
  block_account parent;
  block_account child;
  ledger.grow(parent, token_count{10}, at_start);
  ledger.name(parent, block_id{0});
  ledger.name(parent, block_id{1});
  CHECK(parent.held() == 3);
  ledger.share(parent, child, 2);
  ledger.grow(child, token_count{10}, at_start);
  CHECK(ledger.used() == block_count{4});  // 3 of the parent, 1 copy
  CHECK(ledger.release(parent) == block_count{1});
  CHECK(ledger.release(child) == block_count{3});
  CHECK(ledger.used() == block_count{0});
}

TEST_CASE("a window gives back what nobody reads any more, per group") {
  engine_config config = pool_of(20);
  config.enable_prefix_caching = false;
  config.kv_groups = {kv_group{}, kv_group{token_count{6}}};
  block_ledger ledger{config};
  block_account a;
  ledger.grow(a, token_count{12}, at_start);
  CHECK(ledger.used() == block_count{6});
  // Position 12 reads 7 .. 12 in the window: block 0 goes, block 3 comes in both.
  CHECK(ledger.growth(a, token_count{13}, token_count{12}) == block_count{1});
  ledger.grow(a, token_count{13}, token_count{12});
  CHECK(ledger.used() == block_count{7});
  CHECK(blocks_held(config, token_count{13}, token_count{12}) == block_count{7});
  CHECK(ledger.release(a) == block_count{7});
}
