// Addresses in the pool, worked out by hand, and copies of blocks.
#include "cpu/kv_cache.hpp"

#include <set>

#include "core/error.hpp"
#include "model/kv_arithmetic.hpp"
#include "model/quantized/scalar.hpp"
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
  const std::uint16_t* base = cache.at(0, 0, table, 0, 1).keys;
  for (std::int64_t layer = 0; layer < 3; ++layer) {
    CHECK(cache.group_of(layer) == 0);
    const kv_page page = cache.at(0, layer, table, 0, 1);
    CHECK(page.keys - base == layer * 512);
    CHECK(page.values - page.keys == 256);
    CHECK(cache.at(0, layer, table, 0, 0).keys - page.keys == 4 * 3 * 512);
  }
}

TEST_CASE("a table that lost its front is addressed from its first entry on") {
  kv_cache cache{config_of({}, 1), 10};
  const auto whole = table_of({3, 7, 5});
  const auto rest = table_of({7, 5});
  CHECK(cache.at(0, 0, rest, 1, 1).keys == cache.at(0, 0, whole, 0, 1).keys);
  CHECK(cache.at(0, 0, rest, 1, 2).keys == cache.at(0, 0, whole, 0, 2).keys);
}

TEST_CASE("layers that slide have a group of their own, of several blocks") {
  // Four of six layers slide: blocks hold gcd(2, 4) = 2 layers, so that the full
  // layers take one for 16 tokens and the others two.
  kv_cache cache{config_of({true, true, false, true, true, false}, 6), 10};
  CHECK(cache.bytes() == 10 * 2 * 2 * 256 * 2);
  const auto full = table_of({0, 1});
  const auto sliding = table_of({2, 3, 4, 5});
  const std::uint16_t* base = cache.at(0, 2, full, 0, 0).keys;
  const auto place = [&](std::int64_t layer, std::int32_t index) {
    return cache.at(0, layer, cache.group_of(layer) == 0 ? full : sliding, 0, index).keys - base;
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
      const kv_page page = cache.at(0, layer, table, 0, index);
      const auto mark = static_cast<std::uint16_t>(100 * index + 10 * layer);
      std::fill_n(page.keys, 256, mark);
      std::fill_n(page.values, 256, static_cast<std::uint16_t>(mark + 1));
    }
  }
  cache.copy(block_id{1}, block_id{2});
  const std::int32_t expected[] = {0, 1, 1, 3};
  for (std::int32_t index = 0; index < 4; ++index) {
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      const kv_page page = cache.at(0, layer, table, 0, index);
      const auto mark = static_cast<std::uint16_t>(100 * expected[index] + 10 * layer);
      CHECK(std::set(page.keys, page.keys + 256) == std::set{mark});
      CHECK(std::set(page.values, page.values + 256) ==
            std::set{static_cast<std::uint16_t>(mark + 1)});
    }
  }
}

TEST_CASE("each rank has a pool with its own heads, of the size that memory is reckoned for") {
  // 2 heads over 4 ranks: each has a copy of one, 8 x 16 elements of K.
  kv_cache cache{config_of({true, false}, 2), 6, 4};
  const auto layout = model::make_kv_layout(config_of({true, false}, 2), model::kv_dtype::fp16, 4,
                                            kv_cache::block_size);
  CHECK(static_cast<std::int64_t>(cache.block_bytes()) == layout.block_bytes);
  CHECK(cache.block_bytes() == 2 * 128 * 2);
  CHECK(cache.bytes() == 4 * 6 * cache.block_bytes());
  const auto table = table_of({5, 2});
  std::set<std::uint16_t*> pages;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    for (std::int32_t index = 0; index < 2; ++index) {
      const kv_page page = cache.at(rank, 0, table, 0, index);
      pages.insert({page.keys, page.values});
      std::fill_n(page.keys, 128, static_cast<std::uint16_t>(10 * rank + index));
    }
  }
  CHECK(pages.size() == 16);
  cache.copy(block_id{5}, block_id{2});
  for (std::size_t rank = 0; rank < 4; ++rank) {
    for (std::int32_t index = 0; index < 2; ++index) {
      const kv_page page = cache.at(rank, 0, table, 0, index);
      CHECK(std::set(page.keys, page.keys + 128) ==
            std::set{static_cast<std::uint16_t>(10 * rank)});
    }
  }
}

TEST_CASE("a block of 8-bit codes holds them and their scales, and is copied with both") {
  // Of a layer K has 2 x 8 x 16 codes and 2 x 16 scales of 2 bytes; V too.
  kv_cache cache{config_of({}, 3), 4, 1, model::kv_dtype::int8};
  CHECK(cache.block_bytes() == 3 * 2 * (256 + 64));
  const auto layout =
      model::make_kv_layout(config_of({}, 3), model::kv_dtype::int8, 1, kv_cache::block_size);
  CHECK(static_cast<std::int64_t>(cache.block_bytes()) == layout.block_bytes);
  const auto table = table_of({0, 1, 2, 3});
  const std::vector<float> key(8, 3.0F);
  const std::vector<float> value(8, -5.0F);
  const auto all = [](const kv_page& page) {
    return std::vector<std::uint16_t>(page.keys, page.keys + 320);
  };
  const auto empty = all(cache.at(0, 0, table, 0, 0));
  for (std::int64_t layer = 0; layer < 3; ++layer) {
    const kv_page page = cache.at(0, layer, table, 0, 1);
    CHECK(page.values - page.keys == 128);
    CHECK(page.key_scales - page.values == 128);
    CHECK(page.value_scales - page.key_scales == 32);
    for (std::size_t head = 0; head < 2; ++head) {
      for (std::size_t slot = 0; slot < 16; ++slot) {
        write_kv(page, head, slot, 8, key.data(), value.data());
      }
    }
    CHECK(std::set(page.keys, page.keys + 128) == std::set<std::uint16_t>{0x7F7F});
    CHECK(std::set(page.values, page.values + 128) == std::set<std::uint16_t>{0x8181});
    CHECK(std::set(page.key_scales, page.key_scales + 32) ==
          std::set{model::float_to_half(3.0F / 127)});
  }
  cache.copy(block_id{1}, block_id{2});
  for (std::int64_t layer = 0; layer < 3; ++layer) {
    CHECK(all(cache.at(0, layer, table, 0, 2)) == all(cache.at(0, layer, table, 0, 1)));
    CHECK(all(cache.at(0, layer, table, 0, 0)) == empty);
    CHECK(all(cache.at(0, layer, table, 0, 3)) == empty);
  }
  CHECK_THROWS_AS(kv_cache(config_of({}, 3), 4, 1, model::kv_dtype::fp8), input_error);
}

TEST_CASE("a pool beyond the address space is refused") {
  CHECK_THROWS_AS(kv_cache(config_of({}, 4096), 1 << 30), infeasible_error);
}
