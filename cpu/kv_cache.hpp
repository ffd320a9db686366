// The KV cache in main memory: a pool of equal blocks, addressed as the block
// manager numbers them.
//
// A block holds block_size tokens of `unit_layers` layers, of each K then V, each
// [kv_head][token][head_dim] in fp16. A model whose layers are all of one kind
// has one group and one block for each block_size tokens; layers that slide are
// a group of their own and take several (model/kv_arithmetic.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/units.hpp"
#include "model/config.hpp"

namespace octavo::cpu {

class kv_cache {
 public:
  /// Allocates `blocks` blocks. Pages are touched when first written.
  kv_cache(const model::model_config& config, std::int32_t blocks, std::int32_t block_size);

  /// Where a layer's K and V of one block lie, in 16-bit elements.
  struct page {
    std::uint16_t* keys = nullptr;
    std::uint16_t* values = nullptr;
  };

  /// The page of `layer` for logical block `index` of a group's block table, of
  /// which the first entry stands for logical block `first`.
  [[nodiscard]] page at(std::int64_t layer, const std::vector<block_id>& table,
                        std::int32_t first, std::int32_t index) const {
    const place& p = places_[static_cast<std::size_t>(layer)];
    const auto entry = static_cast<std::size_t>(index - first) * p.blocks + p.block;
    std::uint16_t* keys = pool_.get() + table[entry].raw() * block_elements_ +
                          p.layer_in_block * 2 * layer_elements_;
    return {keys, keys + layer_elements_};
  }
  /// The KV group whose table holds a layer.
  [[nodiscard]] std::size_t group_of(std::int64_t layer) const {
    return places_[static_cast<std::size_t>(layer)].group;
  }
  /// Copies a whole block, of all its layers.
  void copy(block_id from, block_id to);

  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::int32_t block_size() const { return block_size_; }

 private:
  struct place {
    std::size_t group = 0;
    std::size_t blocks = 1;  ///< pool blocks a logical block takes in the group
    std::size_t block = 0;   ///< which of them holds the layer
    std::size_t layer_in_block = 0;
  };
  struct unmap {
    std::size_t bytes = 0;
    void operator()(std::uint16_t* pool) const;
  };

  std::vector<place> places_;
  std::int32_t block_size_;
  std::size_t layer_elements_;  ///< K (or V) of one layer in one block
  std::size_t block_elements_;
  std::size_t bytes_;
  std::unique_ptr<std::uint16_t, unmap> pool_;
};

}  // namespace octavo::cpu
