// What row-wise kernels share: reductions and scans over a block, rows read and
// written as floats a few elements at a time, and the choice of template instances.
#pragma once

#include "gpu/cuda.hpp"
#include "gpu/ptx.h"
#include "gpu/types.hpp"

namespace octavo::gpu {

/// How the threads of a block meet. Kernels take it as a parameter so that tests can
/// leave a meeting out and see that it is missed.
struct block_barrier {
  static __device__ void wait() { __syncthreads(); }
};

/// Shared memory that reduce_block and scan_block need, in values.
inline constexpr int block_scratch = 32;

/// The combination of all lanes' values, the same bits in each lane.
template <class T, class Combine>
__device__ T reduce_warp(T value, Combine combine) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffU, value, distance));
  }
  return value;
}

/// The combination of all threads' values, the same bits in each thread. The block is
/// one-dimensional, of whole warps; `scratch` holds block_scratch values.
template <class Barrier = block_barrier, class T, class Combine>
__device__ T reduce_block(T value, T identity, T* scratch, Combine combine) {
  const int lane = threadIdx.x % 32;
  const int warps = blockDim.x / 32;
  value = reduce_warp(value, combine);
  if (lane == 0) scratch[threadIdx.x / 32] = value;
  Barrier::wait();
  value = reduce_warp(lane < warps ? scratch[lane] : identity, combine);
  // The next reduction may use the same scratch.
  Barrier::wait();
  return value;
}

/// The sum of the values of all threads before this one, and of all, for integers.
template <class T>
struct scanned {
  T before;
  T total;
};

template <class T>
__device__ scanned<T> scan_block(T value, T* scratch) {
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int warps = blockDim.x / 32;
  T upto = value;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const T other = __shfl_up_sync(0xffffffffU, upto, distance);
    if (lane >= distance) upto += other;
  }
  if (lane == 31) scratch[warp] = upto;
  __syncthreads();
  scanned<T> sums{upto - value, 0};
  for (int w = 0; w < warps; ++w) {
    if (w < warp) sums.before += scratch[w];
    sums.total += scratch[w];
  }
  __syncthreads();
  return sums;
}

struct sum_of {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

struct largest_of {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

// ---- rows --------------------------------------------------------------------

/// `count` neighbouring elements, moved in one access.
template <class T, int count>
struct alignas(sizeof(T) * count) packed_elements {
  T values[count];
};

/// Reads `count` elements of 16 bytes at most, the address a multiple of their size.
template <int count, class T>
__device__ void load_elements(const T* from, float (&values)[count]) {
  const auto packed = load_global(reinterpret_cast<const packed_elements<T, count>*>(from));
#pragma unroll
  for (int i = 0; i < count; ++i) values[i] = static_cast<float>(packed.values[i]);
}

template <int count, class T>
__device__ void store_elements(T* to, const float (&values)[count]) {
  packed_elements<T, count> packed;
#pragma unroll
  for (int i = 0; i < count; ++i) packed.values[i] = static_cast<T>(values[i]);
  store_global(reinterpret_cast<packed_elements<T, count>*>(to), packed);
}

}  // namespace octavo::gpu
