// The KV groups of a model as the engine's configuration has them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/config.hpp"
#include "model/config.hpp"

namespace octavo::model {

/// One group for each kind of layer (kv_arithmetic.hpp); `block_size` in tokens.
[[nodiscard]] std::vector<octavo::kv_group> engine_kv_groups(const model_config& config,
                                                             std::int32_t block_size);

}  // namespace octavo::model
