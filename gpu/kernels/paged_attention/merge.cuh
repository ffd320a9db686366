// Merges the partial results of tiles that were split, in the order of their keys,
// just as a block folds runs of keys that it has to itself.
#pragma once

#include "gpu/kernels/paged_attention/arguments.cuh"

namespace octavo::gpu {

/// Grid: (merges, kv_heads).
template <class T>
struct merge_arguments {
  const merge_item* items = nullptr;
  const float* partial_out = nullptr;
  const float2* partial_sums = nullptr;
  T* out = nullptr;
  long long out_stride = 0;
  int group = 1;
  float value_scale = 1;
};

inline constexpr int merge_threads = 128;

/// One row, by a warp; a lane has four columns, and in larger heads four more.
template <class T, int dim>
__device__ void merge_row(const merge_arguments<T>& a, const attention_item& tile, int splits,
                          int row) {
  constexpr int parts = (dim + 127) / 128;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto slot = [&](int split) {
    return static_cast<long long>(tile.partial + split * tile.packed + row) * gridDim.y +
           blockIdx.y;
  };
  row_sums folded;
  float4 out[parts] = {};
  float2 sums{};
  for (int split = 0; split < splits; ++split) {
    if (split % 32 == 0 && split + lane < splits)
      sums = load_global(a.partial_sums + slot(split + lane));
    const row_sums next{__shfl_sync(all_lanes, sums.x, split % 32),
                        __shfl_sync(all_lanes, sums.y, split % 32)};
    const fold_factors f = fold(folded, next);
    folded = f.sums;
#pragma unroll
    for (int part = 0; part < parts; ++part) {
      const int column = part * 128 + lane * 4;
      if (column >= dim) continue;
      const auto* from = a.partial_out + slot(split) * dim + column;
      const float4 more = load_global(reinterpret_cast<const float4*>(from));
      out[part] = {fold_output(out[part].x, more.x, f), fold_output(out[part].y, more.y, f),
                   fold_output(out[part].z, more.z, f), fold_output(out[part].w, more.w, f)};
    }
  }
  const float factor = final_factor(folded.sum, a.value_scale);
  const long long at = head_offset(tile, row, a.group, dim, a.out_stride);
#pragma unroll
  for (int part = 0; part < parts; ++part) {
    const int column = part * 128 + lane * 4;
    if (column >= dim) continue;
    const uint2 bits{pack<T>(out[part].x * factor, out[part].y * factor),
                     pack<T>(out[part].z * factor, out[part].w * factor)};
    store_global(reinterpret_cast<uint2*>(a.out + at + column), bits);
  }
}

template <class T, int dim>
__global__ void __launch_bounds__(merge_threads) merge_partials(merge_arguments<T> a) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto* words = reinterpret_cast<const int32_t*>(a.items + blockIdx.x);
  const int32_t word = lane < 5 ? load_global(words + lane) : 0;
  const int splits = __shfl_sync(all_lanes, word, 4);
  if (splits == 0) return;
  attention_item tile;
  tile.first_row = __shfl_sync(all_lanes, word, 0);
  tile.first_packed = __shfl_sync(all_lanes, word, 1);
  tile.packed = __shfl_sync(all_lanes, word, 2);
  tile.partial = __shfl_sync(all_lanes, word, 3);
  for (int row = static_cast<int>(threadIdx.x) / 32; row < tile.packed; row += merge_threads / 32) {
    merge_row<T, dim>(a, tile, splits, row);
  }
}

}  // namespace octavo::gpu
