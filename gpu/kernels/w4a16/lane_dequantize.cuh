// Weights of the lane layout written out as 16-bit numbers, for products with so
// many tokens that a plain matrix product is faster.
#pragma once

#include "gpu/kernels/dense_gemm/fragments.cuh"
#include "gpu/kernels/w4a16/few_tokens.cuh"

namespace octavo::gpu {

inline constexpr int dequantize_warps = 8;

/// Two weights of `column`, which are exact so far, times its scale.
template <class T>
__device__ std::uint32_t scale_column(const gemm_output& out, int column, std::uint32_t pair) {
  const float scale = load_global(out.column_scales + column * out.column_scale_stride);
  const auto weights = bits_as<value_pair<T>>(pair);
  return bits_as<std::uint32_t>(value_pair<T>{static_cast<T>(to_float(weights.x) * scale),
                                              static_cast<T>(to_float(weights.y) * scale)});
}

/// A warp writes one block of 16 inputs. Grid: x = blocks of columns from `first_block` on,
/// y over slices of 16 inputs. values: [outputs, inputs] of these blocks.
template <class Codec>
__global__ void __launch_bounds__(dequantize_warps * 32)
    dequantize_lanes(few_tokens_arguments t, int first_block, typename Codec::element* values) {
  const int lane = threadIdx.x % 32;
  const int slice =
      static_cast<int>(blockIdx.y) * dequantize_warps + static_cast<int>(threadIdx.x) / 32;
  const int block = first_block + static_cast<int>(blockIdx.x);
  if (slice * 16 >= t.inputs) return;
  lane_loader<Codec> loader{t, block, lane};
  const lane_batch<Codec> batch = loader.load(slice, slice + 1);
  const auto factors = Codec::unpack_factors(batch.scales[0], batch.zeros[0]);
#pragma unroll
  for (int tile = 0; tile < Codec::tiles; ++tile) {
    std::uint32_t pairs[4];
    Codec::unpack(batch.codes[0], tile, factors, pairs);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int column = block * Codec::block_columns + tile * 16 + i / 2 * 8 + lane / 4;
      const int input = slice * 16 + i % 2 * 8 + lane % 4 * 2;
      if (column >= t.output.columns || input >= t.inputs) continue;
      if (t.output.column_scales != nullptr) {
        pairs[i] = scale_column<typename Codec::element>(t.output, column, pairs[i]);
      }
      const int row = column - first_block * Codec::block_columns;
      auto* to = values + static_cast<std::size_t>(row) * t.inputs + input;
      store_global(reinterpret_cast<std::uint32_t*>(to), pairs[i]);
    }
  }
}

}  // namespace octavo::gpu
