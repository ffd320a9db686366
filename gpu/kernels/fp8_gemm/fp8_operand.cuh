// e4m3 weights, [columns, inputs], against e4m3 activations: see tile_gemm.cuh.
#pragma once

#include "gpu/kernels/dense_gemm/tile_gemm.cuh"

namespace octavo::gpu {

/// `T` is the type of results. In block-scaled products tile_arguments::scales has the
/// weights' scales and ::more_scales the activations'.
template <class T, bool block_scaled>
struct fp8_operand {
  using element = __nv_fp8_storage_t;
  using result = T;
  /// Taller tiles, with a product beside each sum, do not fit into the registers.
  static constexpr int tile_rows_max = 32;
  /// One block of scales, four warps' 32 each.
  static constexpr int inputs = 128;
  static constexpr int stride = inputs + 16;
  static constexpr int weight_bytes = tile_width * stride;
  static constexpr int scale_bytes(int, int) { return 0; }

  __device__ static void fetch(const tile_arguments& t, const weight_ring& ring,
                               const stage_place& at, int thread) {
    constexpr int pieces = inputs / 16;
    for (int i = thread; i < tile_width * pieces; i += tile_threads) {
      const int column = at.column0 + i / pieces;
      const int input = at.input0 + i % pieces * 16;
      const bool inside = column < t.output.columns && input < t.inputs;
      const auto* from = static_cast<const unsigned char*>(t.weights);
      if (inside) from += static_cast<std::size_t>(column) * t.inputs + input;
      cp_async16_or_zero(ring.slot + i / pieces * stride + i % pieces * 16, from, inside);
    }
  }

  /// The scales of a stage's products for the lane's rows g and g + 8 of each tile of 16.
  template <int m16>
  __device__ static void load_scales(const tile_arguments& t, const stage_view& view,
                                     float (&scales)[m16][2]) {
    const int blocks = (t.inputs + inputs - 1) / inputs;
    const int block = view.input0 / inputs;
    // A tile's columns are one block of the weight.
    const float weight = load_global(static_cast<const float*>(t.scales) +
                                     view.column0 / tile_width * blocks + block);
#pragma unroll
    for (int i = 0; i < m16; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = view.row0 + i * 16 + half * 8 + view.lane / 4;
        scales[i][half] = row < t.output.rows
                              ? weight * load_global(t.more_scales +
                                                     static_cast<std::size_t>(row) * blocks + block)
                              : 0.0F;
      }
    }
  }

  /// sums += (a x b) * scales, the product by itself first.
  __device__ static void add_product(float (&sums)[4], const std::uint32_t (&a)[4],
                                     const std::uint32_t (&b)[2], const float (&scales)[2]) {
    float product[4] = {};
    mma_16x8x32(product, a, b);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sums[i] = block_scaled ? fmaf(product[i], scales[i / 2], sums[i]) : sums[i] + product[i];
    }
  }

  template <int m16, int n8>
  __device__ static void multiply(const tile_arguments& t, const stage_view& view,
                                  float (&sums)[m16][n8][4]) {
    const int byte = view.warp_inputs * 32;
    const unsigned char* weights = view.weights + view.warp_column * n8 * 8 * stride + byte;
    float scales[m16][2] = {};
    if constexpr (block_scaled) load_scales(t, view, scales);
    std::uint32_t a[m16][4];
#pragma unroll
    for (int i = 0; i < m16; ++i) {
      ldmatrix_x4(a[i], left_operand(view.activations + i * 16 * stride + byte, stride, view.lane));
    }
#pragma unroll
    for (int j = 0; j < n8 / 2; ++j) {
      std::uint32_t b[4];
      ldmatrix_x4(b, right_operand(weights + j * 16 * stride, stride, view.lane));
      const std::uint32_t left[2] = {b[0], b[1]};
      const std::uint32_t right[2] = {b[2], b[3]};
#pragma unroll
      for (int i = 0; i < m16; ++i) {
        add_product(sums[i][2 * j], a[i], left, scales[i]);
        add_product(sums[i][2 * j + 1], a[i], right, scales[i]);
      }
    }
  }
};

}  // namespace octavo::gpu
