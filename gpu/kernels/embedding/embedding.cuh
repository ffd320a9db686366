// The kernel of embedding.hpp: a block for each row.
#pragma once

#include "gpu/kernels/common/block.cuh"

namespace octavo::gpu {

template <class T, class Out>
struct embedding_arguments {
  const int* ids = nullptr;
  const int* sources = nullptr;
  const int* chosen = nullptr;
  const T* table = nullptr;
  Out* output = nullptr;
  int begin = 0;
  int end = 0;
  int width = 0;
  float scale = 1;
};

template <class T, class Out>
__device__ int id_of_row(const embedding_arguments<T, Out>& a, unsigned row) {
  const int source = a.sources == nullptr ? -1 : load_global(a.sources + row);
  return source < 0 ? load_global(a.ids + row) : load_global(a.chosen + source);
}

template <int count, class T, class Out>
__global__ void __launch_bounds__(256) embed_rows(embedding_arguments<T, Out> a) {
  const int id = id_of_row(a, blockIdx.x);
  const bool ours = id >= a.begin && id < a.end;
  const T* from = a.table + static_cast<std::size_t>(ours ? id - a.begin : 0) * a.width;
  Out* to = a.output + static_cast<std::size_t>(blockIdx.x) * a.width;
  for (int column = static_cast<int>(threadIdx.x) * count; column < a.width;
       column += static_cast<int>(blockDim.x) * count) {
    float x[count] = {};
    if (ours) load_elements(from + column, x);
    for (int i = 0; i < count; ++i) x[i] *= a.scale;
    store_elements(to + column, x);
  }
}

}  // namespace octavo::gpu
