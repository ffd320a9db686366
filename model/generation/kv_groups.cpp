// KV groups of a model: see kv_groups.hpp.
#include "model/generation/kv_groups.hpp"

#include "model/kv_arithmetic.hpp"

namespace octavo::model {

std::vector<octavo::kv_group> engine_kv_groups(const model_config& config,
                                               std::int32_t block_size) {
  std::vector<octavo::kv_group> groups;
  const kv_layout layout = make_kv_layout(config, kv_dtype::fp16, 1, block_size);
  for (const kv_group& group : layout.groups) {
    groups.push_back({token_count{static_cast<std::int32_t>(group.window)},
                      static_cast<std::int32_t>(group.pool_blocks)});
  }
  return groups;
}

kv_places make_kv_places(const model_config& config, std::int32_t block_size) {
  const kv_layout layout = make_kv_layout(config, kv_dtype::fp16, 1, block_size);
  const auto slides = [&](std::int64_t layer) {
    return !config.slides.empty() && config.slides[static_cast<std::size_t>(layer)];
  };
  const std::int64_t of_first =
      layout.groups[0].window > 0 ? config.sliding_layers() : config.full_layers();
  kv_places places;
  places.layers_per_block = static_cast<std::size_t>(of_first / layout.groups[0].pool_blocks);
  std::vector<std::size_t> seen(layout.groups.size());
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    kv_place p;
    for (std::size_t g = 0; g < layout.groups.size(); ++g) {
      if ((layout.groups[g].window > 0) == slides(layer)) p.group = g;
    }
    const std::size_t number = seen[p.group]++;
    p.blocks = static_cast<std::size_t>(layout.groups[p.group].pool_blocks);
    p.block = number / places.layers_per_block;
    p.layer_in_block = number % places.layers_per_block;
    places.layers.push_back(p);
  }
  return places;
}

}  // namespace octavo::model
