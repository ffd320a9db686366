// The KV groups of a model as the engine's configuration has them, and where in their
// blocks a layer's keys and values lie: the same for every executor that keeps any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/config.hpp"
#include "model/config.hpp"

namespace octavo::model {

/// One group for each kind of layer (kv_arithmetic.hpp); `block_size` in tokens.
[[nodiscard]] std::vector<octavo::kv_group> engine_kv_groups(const model_config& config,
                                                             std::int32_t block_size);

/// A layer's place. A pool block has room for `layers_per_block` layers' keys and values
/// of block_size tokens; a group with more layers takes several blocks for these tokens.
struct kv_place {
  std::size_t group = 0;
  std::size_t blocks = 1;  ///< that the group takes for block_size tokens
  std::size_t block = 0;   ///< which of them
  std::size_t layer_in_block = 0;
};

struct kv_places {
  std::vector<kv_place> layers;
  std::size_t layers_per_block = 0;
};

[[nodiscard]] kv_places make_kv_places(const model_config& config, std::int32_t block_size);

}  // namespace octavo::model
