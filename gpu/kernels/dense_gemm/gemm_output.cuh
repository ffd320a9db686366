// The end of every matrix product: sums of a tile, scaled, with bias, to the
// output, or to the workspace where several blocks share the tile.
#pragma once

#include "gpu/cuda.hpp"
#include "gpu/ptx.h"

namespace octavo::gpu {

/// Where results go; passed by value to kernels.
struct gemm_output {
  void* values = nullptr;  ///< [rows, stride] of the kernel's type, or of float
  bool as_float = false;
  const void* bias = nullptr;            ///< [columns] of the kernel's type, or null
  const float* row_scales = nullptr;     ///< one, or [rows], or null
  int row_scale_stride = 0;              ///< 0 where all rows share one scale
  const float* column_scales = nullptr;  ///< one, or [columns], or null
  int column_scale_stride = 0;           ///< 0 where all columns share one scale
  int rows = 0;
  int columns = 0;
  int stride = 0;  ///< of rows of values, in elements: at least columns
  float* partials = nullptr;
  int* counters = nullptr;
};

/// Which blocks sum one tile. Share i of `count` lies in slot
/// base + i * step (+ first_extra for share 0) of the partial sums.
struct tile_shares {
  int count = 1;
  int mine = 0;
  int base = 0;
  int step = 1;
  int first_extra = 0;
  int counter = 0;

  __device__ int slot(int share) const {
    return base + share * step + (share == 0 ? first_extra : 0);
  }
};

template <class T>
__device__ inline float to_float(T value) {
  return static_cast<float>(value);
}

template <class T>
struct alignas(4) value_pair {
  T x;
  T y;
};

/// Writes output columns `column` and, where it is inside, `column` + 1. Pairs of a row
/// are aligned where all rows' are.
template <class T>
__device__ void put_pair(T* row, int column, const gemm_output& out, float2 value) {
  const T x = static_cast<T>(value.x);
  const T y = static_cast<T>(value.y);
  if (out.stride % 2 == 0 && column + 1 < out.columns) {
    if constexpr (sizeof(T) == 4) {
      store_global(reinterpret_cast<float2*>(row + column), make_float2(x, y));
    } else {
      store_global(reinterpret_cast<value_pair<T>*>(row + column), value_pair<T>{x, y});
    }
    return;
  }
  store_global(row + column, x);
  if (column + 1 < out.columns) store_global(row + column + 1, y);
}

/// Scales, adds the bias and writes the sums of two neighbouring columns. The bias is added
/// for itself: joined to a product, in kernels for some numbers of rows and not in others, it
/// would make a row's bits depend on its batch.
template <class T>
__device__ void put_sums(const gemm_output& out, int row, int column, float2 value) {
  const int next = column + 1 < out.columns ? column + 1 : column;
  if (out.row_scales != nullptr) {
    const float scale = load_global(out.row_scales + row * out.row_scale_stride);
    value = make_float2(value.x * scale, value.y * scale);
  }
  if (out.column_scales != nullptr) {
    value.x *= load_global(out.column_scales + column * out.column_scale_stride);
    value.y *= load_global(out.column_scales + next * out.column_scale_stride);
  }
  if (out.bias != nullptr) {
    const T* bias = static_cast<const T*>(out.bias);
    value.x = __fadd_rn(value.x, to_float(load_global(bias + column)));
    value.y = __fadd_rn(value.y, to_float(load_global(bias + next)));
  }
  const std::size_t start = static_cast<std::size_t>(row) * out.stride;
  if (out.as_float) {
    put_pair(static_cast<float*>(out.values) + start, column, out, value);
  } else {
    put_pair(static_cast<T*>(out.values) + start, column, out, value);
  }
}

/// Puts this block's sums where the last block of the tile finds them. True in
/// all threads of that last block, when all shares can be read.
template <int tile_rows, int width, int threads>
__device__ bool hand_over(const gemm_output& out, const float* sums, int* last_flag,
                          const tile_shares& shares, int rows) {
  float* mine =
      out.partials + static_cast<std::size_t>(shares.slot(shares.mine)) * tile_rows * width;
  for (int i = threadIdx.x; i < rows * (width / 2); i += threads) {
    const int row = i / (width / 2);
    const int column = i % (width / 2) * 2;
    const float* from = sums + row * (width + 4) + column;
    store_global(reinterpret_cast<float2*>(mine + row * width + column),
                 make_float2(from[0], from[1]));
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    const int before = atomicAdd(out.counters + shares.counter, 1);
    *last_flag = before == shares.count - 1 ? 1 : 0;
    if (before == shares.count - 1) store_global(out.counters + shares.counter, 0);
  }
  __syncthreads();
  __threadfence();
  return *last_flag != 0;
}

/// Finishes the tile whose first output is (row0, column0). `sums` lies in shared
/// memory, [tile_rows][width + 4], complete and visible to all threads; nobody may
/// overwrite it before the next barrier. `last_flag` is a word of shared memory.
template <class T, int tile_rows, int width, int threads>
__device__ void finish_tile(const gemm_output& out, const float* sums, int* last_flag,
                            const tile_shares& shares, int row0, int column0) {
  const int rows = min(tile_rows, out.rows - row0);
  if (shares.count > 1 &&
      !hand_over<tile_rows, width, threads>(out, sums, last_flag, shares, rows)) {
    return;
  }
  for (int i = threadIdx.x; i < rows * (width / 2); i += threads) {
    const int row = i / (width / 2);
    const int column = i % (width / 2) * 2;
    if (column0 + column >= out.columns) continue;
    const float* own = sums + row * (width + 4) + column;
    float2 total = make_float2(0.0F, 0.0F);
    for (int share = 0; share < shares.count; ++share) {
      float2 part = make_float2(own[0], own[1]);
      if (share != shares.mine) {
        part = load_global(reinterpret_cast<const float2*>(
            out.partials +
            (static_cast<std::size_t>(shares.slot(share)) * tile_rows + row) * width + column));
      }
      total = make_float2(total.x + part.x, total.y + part.y);
    }
    put_sums<T>(out, row0 + row, column0 + column, total);
  }
}

}  // namespace octavo::gpu
