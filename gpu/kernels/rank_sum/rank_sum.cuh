// The kernel of rank_sum.hpp: a thread for each value.
#pragma once

#include "gpu/cuda.hpp"
#include "gpu/kernels/rank_sum/rank_sum.hpp"
#include "gpu/ptx.h"

namespace octavo::gpu {

/// Kernel parameters hold the pointers themselves.
struct rank_parts {
  const float* of[rank_sum_max];
};

template <class T>
__global__ void __launch_bounds__(256)
    sum_ranks(rank_parts parts, int ranks, std::int64_t count, T* output) {
  const auto stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i < count; i += stride) {
    float sum = load_global(parts.of[0] + i);
    for (int rank = 1; rank < ranks; ++rank) sum += load_global(parts.of[rank] + i);
    store_global(output + i, static_cast<T>(sum));
  }
}

}  // namespace octavo::gpu
