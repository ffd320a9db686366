// The tensor-core matrix product that all weight types share: output = activations
// x weights^T. What differs, the weights' storage, is a template parameter.
//
// A block of 256 threads makes tiles of tile_rows x 128 outputs. Activations and
// weights stream through a ring of stages in shared memory with cp.async. The warps
// of a block share out the columns of a tile and the 32 x 2 inputs of each stage;
// sums over inputs are joined in a fixed order, first within the block, then, for
// a tile that blocks share (tile_plan.hpp), by its last block. The order of a sum
// depends on the plan only, never on tile_rows or on other rows.
//
// An operand is a struct with
//   element               type of the activations in shared memory
//   result                type of the output and bias
//   tile_rows_max         32 or 64
//   inputs                K of a stage
//   weight_bytes          of a stage in shared memory
//   scale_bytes(group)    of the ring's scales (int stages, int group), 0 if none
//   fetch(t, ring, at, thread)    issues the copies of one stage's weights
//   multiply<m16, n8>(t, view, sums)   adds a warp's share of a stage
#pragma once

#include <cstdint>

#include "gpu/cuda.hpp"
#include "gpu/kernels/dense_gemm/fragments.cuh"
#include "gpu/kernels/dense_gemm/gemm_output.cuh"
#include "gpu/ptx.h"

namespace octavo::gpu {

/// Mistakes that tests make on purpose, to see them found.
enum class seeded_bug { none, no_wait, no_barrier };

inline constexpr int tile_threads = 256;
inline constexpr int tile_width = 128;
/// Row of sums in shared memory: odd in units of 16 bytes, so that rows of a
/// fragment fall into different banks.
inline constexpr int tile_sums_stride = tile_width + 4;

/// One product; passed by value to kernels.
struct tile_arguments {
  const void* activations = nullptr;  ///< [rows, inputs], rows 16-byte aligned
  const void* weights = nullptr;
  const void* scales = nullptr;
  const unsigned char* zeros = nullptr;
  const float* more_scales = nullptr;  ///< of rows, where the operand has any
  int more_scales_stride = 0;          ///< from row to row
  int inputs = 0;
  int group = 0;   ///< inputs that share a scale
  int blocks = 0;  ///< of columns, in the lane layout
  int stages = 0;
  int run_stages = 0;
  gemm_output output;
};

/// A stage of the product: columns of which tile, inputs from where, and whether
/// it is the first that this block takes of the tile.
struct stage_place {
  int column0 = 0;
  int input0 = 0;
  bool first = false;
};

/// The ring's slot for weights and the ring of scales.
struct weight_ring {
  unsigned char* slot = nullptr;
  unsigned char* scales = nullptr;
  int stages = 0;
};

/// What a warp sees of a stage.
struct stage_view {
  const unsigned char* activations = nullptr;
  const unsigned char* weights = nullptr;
  const unsigned char* scales = nullptr;
  int ring_stages = 0;
  int row0 = 0;
  int column0 = 0;
  int input0 = 0;
  int warp_column = 0;  ///< which share of the columns
  int warp_inputs = 0;  ///< which 32 (or 16-byte pairs of) inputs
  int lane = 0;
};

template <int tile_rows>
inline constexpr int ring_stages = tile_rows == 64 ? 3 : 4;

template <class Operand>
struct tile_geometry {
  static constexpr int row_bytes =
      Operand::inputs * static_cast<int>(sizeof(typename Operand::element));
  /// An odd number of 16-byte pieces: ldmatrix meets no bank twice.
  static constexpr int stride = row_bytes + 16;
  /// Warps that share a stage's inputs, 64 bytes of 16-bit numbers or 32 of 8-bit each.
  static constexpr int warps_along = row_bytes / (sizeof(typename Operand::element) == 1 ? 32 : 64);
  static constexpr int warps_across = tile_threads / 32 / warps_along;
  static constexpr int warp_columns = tile_width / warps_across;
};

/// Dynamic shared memory of tile_gemm.
template <class Operand, int tile_rows>
std::size_t tile_shared_bytes(int group) {
  constexpr int stages = ring_stages<tile_rows>;
  const int ring = stages * (tile_rows * tile_geometry<Operand>::stride + Operand::weight_bytes) +
                   Operand::scale_bytes(stages, group);
  const int sums = tile_rows * tile_sums_stride * 4 + 16;
  return static_cast<std::size_t>(ring > sums ? ring : sums);
}

/// Copies a band of activations for one stage; zeros where there are none.
template <class Operand, int tile_rows>
__device__ void fetch_activations(const tile_arguments& t, unsigned char* slot, int row0,
                                  int input0) {
  using geometry = tile_geometry<Operand>;
  using element = typename Operand::element;
  constexpr int pieces = geometry::row_bytes / 16;
  constexpr int piece_inputs = 16 / static_cast<int>(sizeof(element));
  for (int i = threadIdx.x; i < tile_rows * pieces; i += tile_threads) {
    const int row = i / pieces;
    const int piece = i % pieces;
    const int input = input0 + piece * piece_inputs;
    const bool inside = row0 + row < t.output.rows && input < t.inputs;
    const element* from = static_cast<const element*>(t.activations);
    if (inside) from += static_cast<std::size_t>(row0 + row) * t.inputs + input;
    cp_async16_or_zero(slot + row * geometry::stride + piece * 16, from, inside);
  }
}

/// Joins the sums of the warps that shared the inputs, in their order.
template <class Operand, int m16, int n8>
__device__ void join_warps(float* sums, const float (&mine)[m16][n8][4], int warp_column,
                           int warp_inputs, int lane) {
  using geometry = tile_geometry<Operand>;
  for (int turn = 0; turn < geometry::warps_along; ++turn) {
    if (turn == warp_inputs) {
#pragma unroll
      for (int i = 0; i < m16; ++i) {
#pragma unroll
        for (int j = 0; j < n8; ++j) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int row = i * 16 + half * 8 + lane / 4;
            const int column = warp_column * geometry::warp_columns + j * 8 + lane % 4 * 2;
            float2* at = reinterpret_cast<float2*>(sums + row * tile_sums_stride + column);
            float2 value = make_float2(mine[i][j][2 * half], mine[i][j][2 * half + 1]);
            if (turn > 0) value = make_float2(at->x + value.x, at->y + value.y);
            *at = value;
          }
        }
      }
    }
    __syncthreads();
  }
}

/// Sums stages first .. last - 1 of the tile at (row0, column0) into shared memory.
template <class Operand, int tile_rows, seeded_bug bug>
__device__ void sum_stages(const tile_arguments& t, unsigned char* shared, int row0, int column0,
                           int first, int last) {
  using geometry = tile_geometry<Operand>;
  constexpr int ring = ring_stages<tile_rows>;
  constexpr int activation_bytes = tile_rows * geometry::stride;
  constexpr int slot_bytes = activation_bytes + Operand::weight_bytes;
  unsigned char* scales = shared + ring * slot_bytes;
  const auto fetch = [&](int stage) {
    if (stage < last) {
      unsigned char* slot = shared + stage % ring * slot_bytes;
      fetch_activations<Operand, tile_rows>(t, slot, row0, stage * Operand::inputs);
      Operand::fetch(t, weight_ring{slot + activation_bytes, scales, ring},
                     stage_place{column0, stage * Operand::inputs, stage == first}, threadIdx.x);
    }
    cp_async_commit();
  };
  for (int ahead = 0; ahead < ring - 1; ++ahead) fetch(first + ahead);
  const int warp = threadIdx.x / 32;
  stage_view view;
  view.ring_stages = ring;
  view.row0 = row0;
  view.column0 = column0;
  view.scales = scales;
  view.warp_column = warp % geometry::warps_across;
  view.warp_inputs = warp / geometry::warps_across;
  view.lane = threadIdx.x % 32;
  float sums[tile_rows / 16][geometry::warp_columns / 8][4] = {};
  for (int stage = first; stage < last; ++stage) {
    if constexpr (bug != seeded_bug::no_wait) cp_async_wait<ring - 2>();
    if constexpr (bug != seeded_bug::no_barrier) __syncthreads();
    // The slot that this fills was read before the barrier.
    fetch(stage + ring - 1);
    view.activations = shared + stage % ring * slot_bytes;
    view.weights = view.activations + activation_bytes;
    view.input0 = stage * Operand::inputs;
    Operand::multiply(t, view, sums);
  }
  cp_async_wait<0>();
  __syncthreads();
  join_warps<Operand>(reinterpret_cast<float*>(shared), sums, view.warp_column, view.warp_inputs,
                      view.lane);
}

/// Grid: x = runs, y = bands of tile_rows rows.
template <class Operand, int tile_rows, seeded_bug bug = seeded_bug::none>
__global__ void __launch_bounds__(tile_threads, tile_rows == 16 ? 2 : 1)
    tile_gemm(tile_arguments t) {
  OCTAVO_SHARED(shared);
  const int tiles = (t.output.columns + tile_width - 1) / tile_width;
  const int units = tiles * t.stages;
  const int row0 = static_cast<int>(blockIdx.y) * tile_rows;
  const int run = static_cast<int>(blockIdx.x);
  const int end = min(units, (run + 1) * t.run_stages);
  for (int unit = run * t.run_stages; unit < end;) {
    const int tile = unit / t.stages;
    const int first = unit - tile * t.stages;
    const int last = min(t.stages, first + end - unit);
    sum_stages<Operand, tile_rows, bug>(t, shared, row0, tile * tile_width, first, last);
    const int first_run = tile * t.stages / t.run_stages;
    const int last_run = ((tile + 1) * t.stages - 1) / t.run_stages;
    tile_shares shares;
    shares.count = last_run - first_run + 1;
    shares.mine = run - first_run;
    shares.base = 2 * (static_cast<int>(blockIdx.y * gridDim.x) + first_run);
    shares.step = 2;
    // A run's first tile uses its slot 0; the tile it begins uses slot 1.
    shares.first_extra = 1;
    shares.counter = static_cast<int>(blockIdx.y) * tiles + tile;
    float* sums = reinterpret_cast<float*>(shared);
    finish_tile<typename Operand::result, tile_rows, tile_width, tile_threads>(
        t.output, sums, reinterpret_cast<int*>(sums + tile_rows * tile_sums_stride), shares, row0,
        tile * tile_width);
    __syncthreads();
    unit += last - first;
  }
}

}  // namespace octavo::gpu
