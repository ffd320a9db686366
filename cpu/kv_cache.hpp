// The KV cache in main memory: a pool of equal blocks, addressed as the block
// manager numbers them.
//
// A block holds 16 tokens of `unit_layers` layers, of each K then V, laid out as the
// attention kernels read them: in fp16, or as int8 codes with their scales behind. A model whose
// layers are all of one kind has one group and one block for each block_size tokens; layers that
// slide are a group of their own and take several (model/kv_arithmetic.hpp). Each rank of a
// tensor-parallel group has a pool of its own, with its own heads, for the same
// block numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/units.hpp"
#include "cpu/kernels/attention.hpp"
#include "model/config.hpp"
#include "model/formats.hpp"
#include "model/generation/kv_groups.hpp"

namespace octavo::cpu {

class kv_cache {
 public:
  static constexpr std::int32_t block_size = 16;

  /// Room for `blocks` blocks of each rank. Throws infeasible_error where there is
  /// none, input_error for a dtype other than fp16 and int8.
  kv_cache(const model::model_config& config, std::int32_t blocks, int ranks = 1,
           model::kv_dtype dtype = model::kv_dtype::fp16);

  /// A rank's page of `layer` for logical block `index` of a group's block table,
  /// of which the first entry stands for logical block `first`.
  [[nodiscard]] kv_page at(std::size_t rank, std::int64_t layer, const std::vector<block_id>& table,
                           std::int32_t first, std::int32_t index) const {
    const model::kv_place& p = places_[static_cast<std::size_t>(layer)];
    const auto entry = static_cast<std::size_t>(index - first) * p.blocks + p.block;
    std::byte* keys = pool_.data + (rank * blocks_ + table[entry].raw()) * block_bytes_ +
                      p.layer_in_block * 2 * (part_bytes_ + scale_bytes_);
    const auto halves = [](std::byte* at) { return reinterpret_cast<std::uint16_t*>(at); };
    std::byte* scales = keys + 2 * part_bytes_;
    if (scale_bytes_ == 0) return {halves(keys), halves(keys + part_bytes_)};
    return {halves(keys), halves(keys + part_bytes_), halves(scales),
            halves(scales + scale_bytes_)};
  }
  /// The KV group whose table holds a layer.
  [[nodiscard]] std::size_t group_of(std::int64_t layer) const {
    return places_[static_cast<std::size_t>(layer)].group;
  }
  /// Copies a whole block, of all its layers and ranks.
  void copy(block_id from, block_id to);

  /// Of one block of one rank.
  [[nodiscard]] std::size_t block_bytes() const { return block_bytes_; }
  /// Of all ranks.
  [[nodiscard]] std::size_t bytes() const { return pool_.bytes; }

 private:
  /// Memory that the system gives when it is first touched.
  struct mapping {
    explicit mapping(std::size_t size);
    ~mapping();
    mapping(const mapping&) = delete;
    mapping& operator=(const mapping&) = delete;

    std::byte* data = nullptr;
    std::size_t bytes = 0;
  };

  std::vector<model::kv_place> places_;
  std::size_t ranks_;
  std::size_t blocks_;       ///< of one rank
  std::size_t part_bytes_;   ///< K (or V) of one layer in one block
  std::size_t scale_bytes_;  ///< the scales of these
  std::size_t block_bytes_;
  mapping pool_;
};

}  // namespace octavo::cpu
