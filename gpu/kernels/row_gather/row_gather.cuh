// The kernel of row_gather.hpp: a block for each row, in words as wide as fit.
#pragma once

#include "gpu/kernels/common/block.cuh"

namespace octavo::gpu {

template <class Word>
__global__ void __launch_bounds__(256)
    gather_row_words(const int* ids, const Word* input, Word* output, int words) {
  const int id = load_global(ids + blockIdx.x);
  const Word* from = input + static_cast<std::size_t>(max(id, 0)) * words;
  Word* to = output + static_cast<std::size_t>(blockIdx.x) * words;
  for (int i = static_cast<int>(threadIdx.x); i < words; i += static_cast<int>(blockDim.x)) {
    Word word{};
    if (id >= 0) word = load_global(from + i);
    store_global(to + i, word);
  }
}

}  // namespace octavo::gpu
