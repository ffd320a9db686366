// Addresses in the pool, worked out by hand, and copies of blocks.
#include "cpu/kv_cache.hpp"

#include <set>

#include "core/error.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::cpu;

namespace {

/// 2 key-value heads of 8: K of a layer in a block has 2 x 8 x 16 = 256 elements.
model::model_config config_of(std::vector<bool> slides, std::int64_t layers) {
  model::model_config config;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 8;
  config.layers = layers;
  config.slides = std::move(slides);
  if (!config.slides.empty()) config.sliding_window = 32;
  return config;
}

std::vector<block_id> table_of(std::initializer_list<std::uint32_t> numbers) {
  std::vector<block_id> out;
  for (const std::uint32_t number : numbers) out.emplace_back(number);
  return out;
}

}  // namespace

TEST_CASE("in a model of one kind of layer, a block holds K and V of every layer") {
  kv_cache cache{config_of({}, 3), 10};
  // 3 layers x (K + V) x 256 elements of 2 bytes.
  CHECK(cache.bytes() == 10 * 3 * 2 * 256 * 2);
  const auto table = table_of({4, 0});
  const std::uint16_t* base = cache.at(0, table, 0, 1).keys;
  for (std::int64_t layer = 0; layer < 3; ++layer) {
    CHECK(cache.group_of(layer) == 0);
    const kv_page page = cache.at(layer, table, 0, 1);
    CHECK(page.keys - base == layer * 512);
    CHECK(page.values - page.keys == 256);
    CHECK(cache.at(layer, table, 0, 0).keys - page.keys == 4 * 3 * 512);
  }
}

TEST_CASE("a table that lost its front is addressed from its first entry on") {
  kv_cache cache{config_of({}, 1), 10};
  const auto whole = table_of({3, 7, 5});
  const auto rest = table_of({7, 5});
  CHECK(cache.at(0, rest, 1, 1).keys == cache.at(0, whole, 0, 1).keys);
  CHECK(cache.at(0, rest, 1, 2).keys == cache.at(0, whole, 0, 2).keys);
}

TEST_CASE("layers that slide have a group of their own, of several blocks") {
  // Four of six layers slide: blocks hold gcd(2, 4) = 2 layers, so that the full
  // layers take one for 16 tokens and the others two.
  kv_cache cache{config_of({true, true, false, true, true, false}, 6), 10};
  CHECK(cache.bytes() == 10 * 2 * 2 * 256 * 2);
  const auto full = table_of({0, 1});
  const auto sliding = table_of({2, 3, 4, 5});
  const std::uint16_t* base = cache.at(2, full, 0, 0).keys;
  const auto place = [&](std::int64_t layer, std::int32_t index) {
    return cache.at(layer, cache.group_of(layer) == 0 ? full : sliding, 0, index).keys - base;
  };
  CHECK(cache.group_of(2) == 0);
  CHECK(cache.group_of(5) == 0);
  for (const std::int64_t layer : {0, 1, 3, 4}) CHECK(cache.group_of(layer) == 1);
  constexpr std::ptrdiff_t block = 1024;
  constexpr std::ptrdiff_t layer = 512;
  CHECK(place(5, 0) == layer);
  CHECK(place(2, 1) == block);
  CHECK(place(0, 0) == 2 * block);
  CHECK(place(1, 0) == 2 * block + layer);
  CHECK(place(3, 0) == 3 * block);
  CHECK(place(4, 0) == 3 * block + layer);
  CHECK(place(0, 1) == 4 * block);
  CHECK(place(4, 1) == 5 * block + layer);
}

TEST_CASE("a copied block has all layers of its source, and its neighbours are untouched") {
  kv_cache cache{config_of({}, 2), 4};
  const auto table = table_of({0, 1, 2, 3});
  for (std::int32_t index = 0; index < 4; ++index) {
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      const kv_page page = cache.at(layer, table, 0, index);
      const auto mark = static_cast<std::uint16_t>(100 * index + 10 * layer);
      std::fill_n(page.keys, 256, mark);
      std::fill_n(page.values, 256, static_cast<std::uint16_t>(mark + 1));
    }
  }
  cache.copy(block_id{1}, block_id{2});
  const std::int32_t expected[] = {0, 1, 1, 3};
  for (std::int32_t index = 0; index < 4; ++index) {
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      const kv_page page = cache.at(layer, table, 0, index);
      const auto mark = static_cast<std::uint16_t>(100 * expected[index] + 10 * layer);
      CHECK(std::set(page.keys, page.keys + 256) == std::set{mark});
      CHECK(std::set(page.values, page.values + 256) ==
            std::set{static_cast<std::uint16_t>(mark + 1)});
    }
  }
}

TEST_CASE("a pool beyond the address space is refused") {
  CHECK_THROWS_AS(kv_cache(config_of({}, 4096), 1 << 30), infeasible_error);
}
