// Weights as plain 16-bit numbers, [columns, inputs]: see tile_gemm.cuh.
#pragma once

#include "gpu/kernels/dense_gemm/tile_gemm.cuh"

namespace octavo::gpu {

template <class T>
struct dense_operand {
  using element = T;
  using result = T;
  static constexpr int tile_rows_max = 64;
  static constexpr int inputs = 64;
  static constexpr int row_bytes = inputs * 2;
  static constexpr int stride = row_bytes + 16;
  static constexpr int weight_bytes = tile_width * stride;
  static constexpr int scale_bytes(int, int) { return 0; }

  __device__ static void fetch(const tile_arguments& t, const weight_ring& ring,
                               const stage_place& at, int thread) {
    constexpr int pieces = row_bytes / 16;
    for (int i = thread; i < tile_width * pieces; i += tile_threads) {
      const int column = at.column0 + i / pieces;
      const int input = at.input0 + i % pieces * 8;
      const bool inside = column < t.output.columns && input < t.inputs;
      const T* from = static_cast<const T*>(t.weights);
      if (inside) from += static_cast<std::size_t>(column) * t.inputs + input;
      cp_async16_or_zero(ring.slot + i / pieces * stride + i % pieces * 16, from, inside);
    }
  }

  template <int m16, int n8>
  __device__ static void multiply(const tile_arguments&, const stage_view& view,
                                  float (&sums)[m16][n8][4]) {
    const unsigned char* weights = view.weights + view.warp_column * n8 * 8 * stride;
#pragma unroll
    for (int slice = 0; slice < 2; ++slice) {
      const int byte = view.warp_inputs * 64 + slice * 32;
      std::uint32_t a[m16][4];
#pragma unroll
      for (int i = 0; i < m16; ++i) {
        ldmatrix_x4(a[i],
                    left_operand(view.activations + i * 16 * stride + byte, stride, view.lane));
      }
#pragma unroll
      for (int j = 0; j < n8 / 2; ++j) {
        std::uint32_t b[4];
        ldmatrix_x4(b, right_operand(weights + j * 16 * stride + byte, stride, view.lane));
        const std::uint32_t left[2] = {b[0], b[1]};
        const std::uint32_t right[2] = {b[2], b[3]};
#pragma unroll
        for (int i = 0; i < m16; ++i) {
          mma_16x8x16<T>(sums[i][2 * j], a[i], left);
          mma_16x8x16<T>(sums[i][2 * j + 1], a[i], right);
        }
      }
    }
  }
};

}  // namespace octavo::gpu
