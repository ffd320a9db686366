// How products with lane-layout weights are shared out, and what that needs: plain
// arithmetic, the same for all code widths.
#pragma once

#include <algorithm>

#include "gpu/kernels/dense_gemm/dense_gemm.hpp"
#include "gpu/kernels/dense_gemm/tile_plan.hpp"
#include "gpu/kernels/w4a16/lane_layout.hpp"
#include "gpu/kernels/w4a16/lane_product.hpp"

namespace octavo::gpu {

/// Runs of inputs of few_tokens_gemm.
struct few_tokens_plan {
  int blocks = 0;      ///< of columns
  int run_slices = 0;  ///< of 16 inputs
  int runs = 0;

  [[nodiscard]] gemm_needs needs(int block_columns) const {
    if (runs == 1) return {};
    return {static_cast<std::size_t>(blocks * runs) * 8 * static_cast<std::size_t>(block_columns) *
                sizeof(float),
            blocks};
  }
};

/// Two blocks a multiprocessor; between 512 inputs, which give each warp a batch, and
/// 2,048, which fit into shared memory.
inline few_tokens_plan plan_few_tokens(int outputs, int inputs, int bits, int multiprocessors) {
  const auto pieces = [](int of, int size) { return (of + size - 1) / size; };
  few_tokens_plan plan;
  plan.blocks = pieces(outputs, lane_block_columns(bits));
  const int slices = pieces(inputs, lane_block_inputs);
  const int runs = std::max(1, 2 * multiprocessors / plan.blocks);
  plan.run_slices = std::clamp(pieces(pieces(slices, runs), 8) * 8, 32, 128);
  plan.runs = pieces(slices, plan.run_slices);
  return plan;
}

/// Turns of the dense path: how many outputs' weights are written out at a time.
struct dense_plan {
  int columns = 0;  ///< whole blocks of codes
  std::size_t weight_bytes = 0;
};

/// Turns of one size within p.dense_bytes_max, or of a tile's columns where not even these
/// fit.
inline dense_plan plan_dense(const lane_product& p) {
  const auto pieces = [](int of, int size) { return (of + size - 1) / size; };
  const std::size_t tile_bytes = std::size_t{2} * static_cast<std::size_t>(tile_columns) *
                                 static_cast<std::size_t>(p.weights.inputs);
  const int tiles = pieces(p.weights.outputs, tile_columns);
  const auto tiles_max = static_cast<int>(
      std::clamp(p.dense_bytes_max / tile_bytes, std::size_t{1}, static_cast<std::size_t>(tiles)));
  const int turn_tiles = pieces(tiles, pieces(tiles, tiles_max));
  return {turn_tiles * tile_columns, static_cast<std::size_t>(turn_tiles) * tile_bytes};
}

/// The product with outputs `first` to `first` + plan.columns, whose weights lie at the
/// front of `workspace`.
dense_product dense_turn(const lane_product& p, const dense_plan& plan, int first,
                         const void* activations, const gemm_workspace& workspace);

inline lane_path path_of(const lane_product& p) {
  if (p.path != lane_path::automatic) return p.path;
  if (p.batch_invariant) return lane_path::tiles;
  if (p.tokens >= p.dense_tokens_min) return lane_path::dense;
  return p.tokens <= 8 ? lane_path::few_tokens : lane_path::tiles;
}

/// Bytes at the front of the workspace for activations put in order.
inline std::size_t gathered_bytes(const lane_product& p) {
  if (p.weights.order == nullptr) return 0;
  const std::size_t bytes = static_cast<std::size_t>(p.tokens) * p.weights.inputs * 2;
  return (bytes + 255) / 256 * 256;
}

inline tile_plan plan_lane_tiles(const lane_product& p, int bits) {
  return plan_tiles(p.tokens, p.weights.outputs, p.weights.inputs, 2 * lane_block_columns(bits),
                    p.multiprocessors, p.batch_invariant);
}

/// A workspace without its first bytes, a multiple of 256.
inline gemm_workspace past(gemm_workspace workspace, std::size_t bytes) {
  workspace.data = static_cast<unsigned char*>(workspace.data) + bytes;
  workspace.bytes -= bytes;
  return workspace;
}

gemm_needs needs_of(const lane_product& p, int bits);

/// Throws input_error naming `kernel` and the field.
void check_lane_shape(const lane_product& p, const char* kernel);
void check_lane_pointers(const lane_product& p, const char* kernel);

}  // namespace octavo::gpu
