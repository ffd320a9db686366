// Where layers lie, by hand.
#include "model/generation/kv_groups.hpp"

#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;

namespace {

model_config config_of(std::int64_t layers, std::vector<bool> slides) {
  model_config config;
  config.hidden_size = 64;
  config.layers = layers;
  config.heads = config.kv_heads = 2;
  config.head_dim = 32;
  config.slides = std::move(slides);
  config.sliding_window = config.slides.empty() ? 0 : 64;
  return config;
}

}  // namespace

TEST_CASE("layers of one kind lie one behind another in one block") {
  const kv_places places = make_kv_places(config_of(3, {}), 16);
  CHECK(places.layers_per_block == 3);
  for (std::size_t layer = 0; layer < 3; ++layer) {
    CHECK(places.layers[layer].group == 0);
    CHECK(places.layers[layer].blocks == 1);
    CHECK(places.layers[layer].block == 0);
    CHECK(places.layers[layer].layer_in_block == layer);
  }
}

TEST_CASE("layers that slide are a group with blocks of its own") {
  const auto config = config_of(6, {true, true, false, true, true, false});
  const kv_places places = make_kv_places(config, 16);
  const auto groups = engine_kv_groups(config, 16);
  // Four layers slide and two do not: a block holds two, so that both fill theirs.
  CHECK(places.layers_per_block == 2);
  REQUIRE(groups.size() == 2);
  std::vector<std::size_t> sliding_blocks;
  for (std::size_t layer = 0; layer < 6; ++layer) {
    const kv_place& p = places.layers[layer];
    CHECK((groups[p.group].window.raw() > 0) == config.slides[layer]);
    CHECK(p.blocks == (config.slides[layer] ? 2U : 1U));
    if (config.slides[layer]) sliding_blocks.push_back(p.block * 2 + p.layer_in_block);
  }
  CHECK(sliding_blocks == std::vector<std::size_t>{0, 1, 2, 3});
}
