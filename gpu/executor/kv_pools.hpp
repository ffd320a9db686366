// The KV cache of one rank on its device: for each layer that a pool block holds, a pool
// of keys and one of values, [block][kv_head][16][head_dim], numbered as the block
// manager numbers blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/units.hpp"
#include "gpu/runtime/memory.hpp"
#include "gpu/types.hpp"
#include "model/config.hpp"
#include "model/generation/kv_groups.hpp"

namespace octavo::gpu {

class kv_pools {
 public:
  /// For a rank of `ranks`; without memory yet.
  kv_pools(const model::model_config& config, int ranks, dtype type);

  /// Makes room for so many blocks on the current device. Throws device_error where
  /// memory ends.
  void allocate(std::int32_t blocks);
  /// Gives the memory back.
  void release();
  /// Makes all keys and values zero.
  void fill_zero(stream& on);

  /// Where a layer's pages are.
  [[nodiscard]] const model::kv_place& place(std::int64_t layer) const {
    return places_.layers[static_cast<std::size_t>(layer)];
  }
  [[nodiscard]] void* keys(std::int64_t layer) { return keys_[place(layer).layer_in_block].data(); }
  [[nodiscard]] void* values(std::int64_t layer) {
    return values_[place(layer).layer_in_block].data();
  }

  /// Copies a whole block, of all its layers.
  void copy(stream& on, block_id from, block_id to);

  /// Of one block.
  [[nodiscard]] static std::int64_t block_bytes(const model::model_config& config, int ranks,
                                                dtype type);

 private:
  model::kv_places places_;
  std::size_t page_bytes_;  ///< keys (or values) of one layer in one block
  std::vector<device_array<std::byte>> keys_, values_;
};

}  // namespace octavo::gpu
