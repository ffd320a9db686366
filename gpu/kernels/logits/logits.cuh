// The kernel of logits.hpp: a thread for each few logits of a row.
#pragma once

#include "gpu/kernels/common/block.cuh"

namespace octavo::gpu {

template <class T>
struct logits_arguments {
  const T* input = nullptr;
  float* output = nullptr;
  int rows = 0;
  int vocabulary = 0;
  int shard_width = 0;
  float scale = 1;
  float soft_cap = 0;
};

inline constexpr int logits_threads = 256;
inline constexpr int logits_per_thread = 4;
inline constexpr int logits_per_block = logits_threads * logits_per_thread;

template <class T>
__global__ void __launch_bounds__(logits_threads) finish_logit_rows(logits_arguments<T> a) {
  const int row = static_cast<int>(blockIdx.x);
  const int first = static_cast<int>(blockIdx.y) * logits_per_block + threadIdx.x;
#pragma unroll
  for (int i = 0; i < logits_per_thread; ++i) {
    const int token = first + i * logits_threads;
    if (token >= a.vocabulary) break;
    const int shard = token / a.shard_width;
    const std::size_t from =
        (static_cast<std::size_t>(shard) * a.rows + row) * a.shard_width + token % a.shard_width;
    float x = static_cast<float>(load_global(a.input + from)) * a.scale;
    if (a.soft_cap > 0) x = a.soft_cap * tanhf(x / a.soft_cap);
    store_global(a.output + static_cast<std::size_t>(row) * a.vocabulary + token, x);
  }
}

}  // namespace octavo::gpu
