// The KV cache in main memory: a pool of equal blocks, addressed as the block
// manager numbers them.
//
// A block holds 16 tokens of `unit_layers` layers, of each K then V in fp16, laid
// out as the attention kernels read them. A model whose layers are all of one kind
// has one group and one block for each block_size tokens; layers that slide are
// a group of their own and take several (model/kv_arithmetic.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/units.hpp"
#include "cpu/kernels/attention.hpp"
#include "model/config.hpp"

namespace octavo::cpu {

class kv_cache {
 public:
  static constexpr std::int32_t block_size = 16;

  /// Room for `blocks` blocks. Throws infeasible_error where there is none.
  kv_cache(const model::model_config& config, std::int32_t blocks);

  /// The page of `layer` for logical block `index` of a group's block table, of
  /// which the first entry stands for logical block `first`.
  [[nodiscard]] kv_page at(std::int64_t layer, const std::vector<block_id>& table,
                           std::int32_t first, std::int32_t index) const {
    const place& p = places_[static_cast<std::size_t>(layer)];
    const auto entry = static_cast<std::size_t>(index - first) * p.blocks + p.block;
    std::uint16_t* keys =
        pool_.data + table[entry].raw() * block_elements_ + p.layer_in_block * 2 * layer_elements_;
    return {keys, keys + layer_elements_};
  }
  /// The KV group whose table holds a layer.
  [[nodiscard]] std::size_t group_of(std::int64_t layer) const {
    return places_[static_cast<std::size_t>(layer)].group;
  }
  /// Copies a whole block, of all its layers.
  void copy(block_id from, block_id to);

  [[nodiscard]] std::size_t bytes() const { return pool_.bytes; }

 private:
  struct place {
    std::size_t group = 0;
    std::size_t blocks = 1;  ///< pool blocks a logical block takes in the group
    std::size_t block = 0;   ///< which of them holds the layer
    std::size_t layer_in_block = 0;
  };
  /// Memory that the system gives when it is first touched.
  struct mapping {
    explicit mapping(std::size_t size);
    ~mapping();
    mapping(const mapping&) = delete;
    mapping& operator=(const mapping&) = delete;

    std::uint16_t* data = nullptr;
    std::size_t bytes = 0;
  };

  std::vector<place> places_;
  std::size_t layer_elements_;  ///< K (or V) of one layer in one block
  std::size_t block_elements_;
  mapping pool_;
};

}  // namespace octavo::cpu
