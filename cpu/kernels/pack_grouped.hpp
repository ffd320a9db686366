// Weights whose scales and zero points belong to groups of inputs: AWQ, GPTQ,
// compressed-tensors integers, and one byte a weight. Internal to packed_weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/kernels/layout.hpp"
#include "model/quantized/weight_matrix.hpp"

namespace octavo::cpu {

/// The order in which packed rows hold their inputs: group by group, each filled up
/// to whole blocks.
struct grouping {
  layout kind{};
  std::size_t groups = 0;
  std::vector<std::uint32_t> block_groups;  ///< of each block
  /// The column at each place, -1 for filling; empty where it is the place itself.
  std::vector<std::int32_t> order;
};

/// `matrix` holds anything but blocks or floats.
[[nodiscard]] grouping group_inputs(const model::weight_matrix& matrix);

/// Packs one tile: codes [block], and fields [group] (8 floats, 8 zero points).
void pack_grouped_tile(const model::weight_matrix& matrix, const grouping& inputs, std::size_t tile,
                       std::byte* codes, std::byte* fields);

}  // namespace octavo::cpu
