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

}  // namespace octavo::model
