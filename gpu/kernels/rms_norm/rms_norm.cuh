// The kernel of rms_norm.hpp: a block for each row, the row kept in shared memory
// between its passes. Each thread comes back to its own elements, so threads meet in
// the sums of squares only.
#pragma once

#include "gpu/kernels/common/block.cuh"

namespace octavo::gpu {

/// One row's addresses. Null: residual, input_weight and output where there are none.
template <class T, class W>
struct norm_row {
  const float* residual = nullptr;
  float* new_residual = nullptr;  ///< null: the sum is not kept
  const W* input_weight = nullptr;
  const W* weight = nullptr;
  T* output = nullptr;
  int width = 0;
  float epsilon = 0;
};

/// Shared memory of a block that norms rows.
inline constexpr std::size_t norm_shared_bytes(int width) {
  return (static_cast<std::size_t>(block_scratch) + width + 3) / 4 * 16;
}

template <class Barrier>
__device__ float norm_factor(float squares, int width, float epsilon, float* scratch) {
  squares = reduce_block<Barrier>(squares, 0.0F, scratch, sum_of());
  return 1.0F / sqrtf(squares / static_cast<float>(width) + epsilon);
}

/// Takes the input, normed where wanted, and the residual into `kept`; returns this
/// thread's sum of squares. source(column, values) gives `count` elements; it is called
/// once for each. Roundings are spelled out: a row has the same bits in every kernel.
template <int count, class Barrier, class T, class W, class Source>
__device__ float sum_into_residual(const norm_row<T, W>& row, const Source& source, float* kept,
                                   float* scratch) {
  const int step = static_cast<int>(blockDim.x) * count;
  const int first = static_cast<int>(threadIdx.x) * count;
  float factor = 1;
  if (row.input_weight != nullptr) {
    float squares = 0;
    for (int column = first; column < row.width; column += step) {
      float x[count];
      source(column, x);
      for (int i = 0; i < count; ++i) {
        kept[column + i] = x[i];
        squares = fmaf(x[i], x[i], squares);
      }
    }
    factor = norm_factor<Barrier>(squares, row.width, row.epsilon, scratch);
  }
  float squares = 0;
  for (int column = first; column < row.width; column += step) {
    float x[count];
    if (row.input_weight != nullptr) {
      float w[count];
      load_elements(row.input_weight + column, w);
      for (int i = 0; i < count; ++i) x[i] = kept[column + i] * factor * w[i];
    } else {
      source(column, x);
    }
    if (row.residual != nullptr) {
      float r[count];
      load_elements(row.residual + column, r);
      for (int i = 0; i < count; ++i) x[i] = __fadd_rn(x[i], r[i]);
      if (row.new_residual != nullptr) store_elements(row.new_residual + column, x);
    }
    for (int i = 0; i < count; ++i) {
      kept[column + i] = x[i];
      squares = fmaf(x[i], x[i], squares);
    }
  }
  return squares;
}

/// Norms one row; all threads of the block take part. `shared` has norm_shared_bytes.
template <int count, class Barrier = block_barrier, class T, class W, class Source>
__device__ void norm_one_row(const norm_row<T, W>& row, const Source& source,
                             unsigned char* shared) {
  float* scratch = reinterpret_cast<float*>(shared);
  float* kept = scratch + block_scratch;
  const float squares = sum_into_residual<count, Barrier>(row, source, kept, scratch);
  if (row.output == nullptr) return;
  const float factor = norm_factor<Barrier>(squares, row.width, row.epsilon, scratch);
  const int step = static_cast<int>(blockDim.x) * count;
  for (int column = static_cast<int>(threadIdx.x) * count; column < row.width; column += step) {
    float x[count];
    float w[count];
    load_elements(row.weight + column, w);
    for (int i = 0; i < count; ++i) x[i] = kept[column + i] * factor * w[i];
    store_elements(row.output + column, x);
  }
}

template <class T, class W>
struct rms_norm_arguments {
  norm_row<T, W> first;  ///< of row 0
  const T* input = nullptr;
  const int* row_ids = nullptr;
};

/// The addresses for output row `row`, made of input and residual row `from`.
template <class T, class W>
__device__ norm_row<T, W> row_at(const norm_row<T, W>& first, std::size_t row, std::size_t from) {
  norm_row<T, W> at = first;
  if (at.residual != nullptr) at.residual += from * first.width;
  if (at.new_residual != nullptr) at.new_residual += from * first.width;
  if (at.output != nullptr) at.output += row * first.width;
  return at;
}

template <int count, class T, class W, class Barrier = block_barrier>
__global__ void __launch_bounds__(1024) rms_norm_rows(rms_norm_arguments<T, W> a) {
  OCTAVO_SHARED(shared);
  const int row = static_cast<int>(blockIdx.x);
  const int from = a.row_ids != nullptr ? load_global(a.row_ids + row) : row;
  const int width = a.first.width;
  if (from < 0) {
    const float zeros[count] = {};
    T* output = a.first.output + static_cast<std::size_t>(row) * width;
    for (int column = static_cast<int>(threadIdx.x) * count; column < width;
         column += static_cast<int>(blockDim.x) * count) {
      store_elements(output + column, zeros);
    }
    return;
  }
  const auto at = row_at(a.first, row, from);
  const T* input = a.input != nullptr ? a.input + static_cast<std::size_t>(from) * width : nullptr;
  norm_one_row<count, Barrier>(
      at,
      [input](int column, float(&x)[count]) {
        if (input != nullptr) {
          load_elements(input + column, x);
        } else {
          for (int i = 0; i < count; ++i) x[i] = 0;
        }
      },
      shared);
}

}  // namespace octavo::gpu
