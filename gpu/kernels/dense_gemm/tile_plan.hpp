// How the tiles of a matrix product are shared out among blocks.
//
// The work on one band of output rows is n_tiles x k_stages units, counted along K
// first. Units are cut into equal runs, one a block, that pass over tile borders
// (the striped partition of Marlin, also called stream-K): every block streams the
// same amount of weights. A tile cut by a border is summed by the last of its
// blocks to finish, in the order of K, so that results never depend on timing.
#pragma once

#include <algorithm>
#include <cstddef>

#include "gpu/kernels/dense_gemm/gemm_workspace.hpp"

namespace octavo::gpu {

/// Output columns of a tile.
inline constexpr int tile_columns = 128;
/// Rows of tiles that share a launch where tiles are cut: bounds the workspace.
inline constexpr int cut_row_tiles_max = 4;
/// Fewer stages than these are not worth a block of their own.
inline constexpr int run_stages_min = 4;

struct tile_plan {
  int tile_rows = 16;  ///< 16, 32 or 64
  int row_tiles = 1;
  int column_tiles = 1;
  int stages = 1;      ///< along K, of one tile
  int runs = 1;        ///< blocks a band of rows
  int run_stages = 1;  ///< of one run

  /// Does any tile belong to more than one run?
  [[nodiscard]] bool splits() const { return runs > 1 && run_stages % stages != 0; }

  /// Rows of tiles in one launch; a launcher takes more rows in several launches.
  [[nodiscard]] int launch_row_tiles() const {
    return splits() ? std::min(row_tiles, cut_row_tiles_max) : row_tiles;
  }

  /// A run gives partial sums of at most two tiles: its first and its last.
  [[nodiscard]] gemm_needs needs() const {
    if (!splits()) return {};
    const auto slots = std::size_t{2} * static_cast<std::size_t>(runs * launch_row_tiles());
    return {slots * static_cast<std::size_t>(tile_rows * tile_columns) * sizeof(float),
            launch_row_tiles() * column_tiles};
  }
};

/// `inputs` is K, `stage_inputs` how much of it one stage of the kernel takes. In
/// batch-invariant mode runs depend on nothing but the weight's shape and the device.
inline tile_plan plan_tiles(int tokens, int outputs, int inputs, int stage_inputs,
                            int multiprocessors, bool batch_invariant, int tile_rows_max = 64) {
  const auto pieces = [](int of, int size) { return (of + size - 1) / size; };
  tile_plan plan;
  plan.tile_rows = tokens <= 16 ? 16 : tokens <= 32 ? 32 : tile_rows_max;
  plan.row_tiles = pieces(tokens, plan.tile_rows);
  plan.column_tiles = pieces(outputs, tile_columns);
  plan.stages = pieces(inputs, stage_inputs);
  const int units = plan.column_tiles * plan.stages;
  int blocks = multiprocessors;
  if (!batch_invariant) {
    // Small tiles leave room for a second block on each multiprocessor.
    blocks = plan.tile_rows == 16 ? 2 * blocks : std::max(1, blocks / plan.row_tiles);
  }
  if (!batch_invariant && plan.row_tiles * plan.column_tiles >= 2 * multiprocessors) {
    // Enough whole tiles for everyone: no need to cut any.
    plan.run_stages = plan.stages;
  } else {
    plan.run_stages = std::max(std::min(run_stages_min, units), pieces(units, blocks));
  }
  plan.runs = pieces(units, plan.run_stages);
  return plan;
}

}  // namespace octavo::gpu
