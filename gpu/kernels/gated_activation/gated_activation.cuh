// The kernel of gated_activation.hpp: a thread for each few elements of a row.
#pragma once

#include "gpu/kernels/common/block.cuh"
#include "gpu/kernels/gated_activation/gated_activation.hpp"

namespace octavo::gpu {

template <class T>
struct gated_activation_arguments {
  const T* gate = nullptr;
  const T* up = nullptr;
  T* output = nullptr;
  int width = 0;
  int stride = 0;
};

/// 1 / (1 + e^-x).
__device__ inline float logistic(float x) {
  return 1.0F / (1.0F + exp2_approximate(x * -1.44269504F));
}

template <gate_function function>
__device__ float gated(float x) {
  if constexpr (function == gate_function::silu) {
    return x * logistic(x);
  } else {
    // (1 + tanh y) / 2 = logistic(2 y)
    return x * logistic(2.0F * 0.797884561F * (x + 0.044715F * x * x * x));
  }
}

/// Threads of a block.
inline constexpr int gated_activation_threads = 256;

template <int count, gate_function function, class T>
__global__ void __launch_bounds__(gated_activation_threads)
    gated_activation_rows(gated_activation_arguments<T> a) {
  const int column = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x) * count;
  if (column >= a.width) return;
  const std::size_t from = static_cast<std::size_t>(blockIdx.x) * a.stride + column;
  float gate[count];
  float up[count];
  load_elements(a.gate + from, gate);
  load_elements(a.up + from, up);
  for (int i = 0; i < count; ++i) gate[i] = gated<function>(gate[i]) * up[i];
  store_elements(a.output + static_cast<std::size_t>(blockIdx.x) * a.width + column, gate);
}

}  // namespace octavo::gpu
