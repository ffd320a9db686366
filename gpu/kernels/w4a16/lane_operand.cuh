// Weights in the lane layout as an operand of tile_gemm: codes go from the ring
// straight to registers and become floats there.
#pragma once

#include "gpu/kernels/dense_gemm/tile_gemm.cuh"
#include "gpu/kernels/w4a16/lane_layout.hpp"

namespace octavo::gpu {

template <class Codec>
struct lane_operand {
  using element = typename Codec::element;
  using result = element;
  static constexpr int tile_rows_max = 64;
  static constexpr int block_columns = Codec::block_columns;
  /// Twice a block's columns: as many inputs as make a stage 8 KiB of codes.
  static constexpr int inputs = 2 * block_columns;
  static constexpr int stride = inputs * 2 + 16;
  static constexpr int weight_bytes = 8192;
  /// A group's row of the ring: scales, then zero points, of a tile's columns.
  static constexpr int scale_row_bytes = tile_width * 3;

  static __host__ __device__ int rows_in_ring(int stages, int group) {
    return stages * (group < inputs ? inputs / group : 1);
  }
  static int scale_bytes(int stages, int group) {
    return rows_in_ring(stages, group) * scale_row_bytes;
  }

  __device__ static void fetch(const tile_arguments& t, const weight_ring& ring,
                               const stage_place& at, int thread) {
    constexpr int across = tile_width / block_columns;
    const int slices = (t.inputs + lane_block_inputs - 1) / lane_block_inputs;
    for (int i = thread; i < weight_bytes / 16; i += tile_threads) {
      const int slice = at.input0 / lane_block_inputs + i / (32 * across);
      const int block = at.column0 / block_columns + i / 32 % across;
      const bool inside = slice < slices && block < t.blocks;
      const auto* from = static_cast<const unsigned char*>(t.weights);
      if (inside) {
        from += ((static_cast<std::size_t>(slice) * t.blocks + block) * 32 + i % 32) * 16;
      }
      cp_async16_or_zero(ring.slot + i * 16, from, inside);
    }
    if (t.scales != nullptr) fetch_scales(t, ring, at, thread);
  }

  /// Copies the rows of groups that begin in this stage, or, at first, that it needs.
  __device__ static void fetch_scales(const tile_arguments& t, const weight_ring& ring,
                                      const stage_place& at, int thread) {
    constexpr int scale_pieces = tile_width * 2 / 16;
    const int pieces = scale_pieces + (t.zeros != nullptr ? tile_width / 16 : 0);
    const int columns = t.blocks * block_columns;
    const int first = at.input0 / t.group;
    const int last = (min(at.input0 + inputs, t.inputs) - 1) / t.group;
    for (int i = thread; i < (last - first + 1) * pieces; i += tile_threads) {
      const int group = first + i / pieces;
      if (!at.first && group * t.group < at.input0) continue;
      unsigned char* row =
          ring.scales + group % rows_in_ring(ring.stages, t.group) * scale_row_bytes;
      const int piece = i % pieces;
      const bool zeros = piece >= scale_pieces;
      const int column = at.column0 + (zeros ? (piece - scale_pieces) * 16 : piece * 8);
      const std::size_t place = static_cast<std::size_t>(group) * columns + column;
      const bool inside = column < columns;
      const auto* from = static_cast<const unsigned char*>(t.scales);
      if (inside) from = zeros ? t.zeros + place : from + place * 2;
      cp_async16_or_zero(row + piece * 16, from, inside);
    }
  }

  /// The lane's factors for the warp's 32 inputs, which share a group.
  __device__ static typename Codec::factors factors_of(const tile_arguments& t,
                                                       const stage_view& view) {
    typename Codec::scale_vector scales = Codec::unit_scales();
    typename Codec::zero_vector zeros = Codec::middle();
    if (t.scales != nullptr) {
      const int input = min(view.input0 + view.warp_inputs * 32, t.inputs - 1);
      const int slot = input / t.group % rows_in_ring(view.ring_stages, t.group);
      const unsigned char* row = view.scales + slot * scale_row_bytes;
      const int column = view.warp_column * block_columns + view.lane / 4 * (block_columns / 8);
      scales = *reinterpret_cast<const typename Codec::scale_vector*>(row + column * 2);
      if (t.zeros != nullptr) {
        zeros =
            *reinterpret_cast<const typename Codec::zero_vector*>(row + tile_width * 2 + column);
      }
    }
    return Codec::unpack_factors(scales, zeros);
  }

  template <int m16, int n8>
  __device__ static void multiply(const tile_arguments& t, const stage_view& view,
                                  float (&sums)[m16][n8][4]) {
    static_assert(n8 * 8 == block_columns);
    constexpr int across = tile_width / block_columns;
    const typename Codec::factors factors = factors_of(t, view);
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      const int slice = view.warp_inputs * 2 + s;
      const uint4 codes = *reinterpret_cast<const uint4*>(
          view.weights + ((slice * across + view.warp_column) * 32 + view.lane) * 16);
      std::uint32_t a[m16][4];
#pragma unroll
      for (int i = 0; i < m16; ++i) {
        ldmatrix_x4(
            a[i], left_operand(view.activations + i * 16 * stride + slice * 32, stride, view.lane));
      }
#pragma unroll
      for (int tile = 0; tile < Codec::tiles; ++tile) {
        std::uint32_t b[4];
        Codec::unpack(codes, tile, factors, b);
        const std::uint32_t lower[2] = {b[0], b[1]};
        const std::uint32_t upper[2] = {b[2], b[3]};
#pragma unroll
        for (int i = 0; i < m16; ++i) {
          mma_16x8x16<element>(sums[i][2 * tile], a[i], lower);
          mma_16x8x16<element>(sums[i][2 * tile + 1], a[i], upper);
        }
      }
    }
  }
};

}  // namespace octavo::gpu
