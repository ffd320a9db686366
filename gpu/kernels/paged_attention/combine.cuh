// The end of a run of keys that the warps of a block shared: their results become one
// and are folded into what earlier runs left, in shared memory.
#pragma once

#include "gpu/kernels/paged_attention/pages.cuh"

namespace octavo::gpu {

/// Places in shared memory, in bytes. The warps' results lie where their pages were.
template <class C>
struct combine_layout {
  /// Floats from row to row, such that lanes store pairs (or fours, with e4m3 values) of
  /// several rows into different banks.
  static constexpr int stride = C::dim + (is_e4m3<typename C::KV> ? 16 : 8);
  static constexpr int outputs_bytes = C::warps * C::tile_rows * stride * 4;
  static constexpr int folded = 0;
  static constexpr int warp_sums = folded + C::tile_rows * C::dim * 4;
  static constexpr int warp_factors = warp_sums + C::warps * C::tile_rows * 8;
  static constexpr int folds = warp_factors + C::warps * C::tile_rows * 4;
  static constexpr int folded_sums = folds + C::tile_rows * 8;
  static constexpr int bytes = (folded_sums + C::tile_rows * 8 + 15) / 16 * 16;
};

template <class C>
class block_combiner {
 public:
  using layout = combine_layout<C>;

  /// `outputs`: layout::outputs_bytes that are free when combine() is called.
  __device__ block_combiner(unsigned char* outputs, unsigned char* room)
      : outputs_(reinterpret_cast<float*>(outputs)),
        folded_(reinterpret_cast<float*>(room + layout::folded)),
        warp_sums_(reinterpret_cast<float2*>(room + layout::warp_sums)),
        warp_factors_(reinterpret_cast<float*>(room + layout::warp_factors)),
        folds_(reinterpret_cast<float2*>(room + layout::folds)),
        folded_sums_(reinterpret_cast<float2*>(room + layout::folded_sums)) {}

  /// Before the first run; a barrier must follow.
  __device__ void reset() {
    for (int i = static_cast<int>(threadIdx.x); i < C::tile_rows * C::dim; i += C::threads) {
      store_shared(folded_ + i, 0.0F);
    }
    const int row = static_cast<int>(threadIdx.x);
    if (row < C::tile_rows) store_shared(folded_sums_ + row, float2{-INFINITY, 0});
  }

  /// Where a warp puts a row's output.
  __device__ float* output(int warp, int row) {
    return outputs_ + (warp * C::tile_rows + row) * layout::stride;
  }
  __device__ void put_sums(int warp, int row, float maximum, float sum) {
    store_shared(warp_sums_ + warp * C::tile_rows + row, float2{maximum, sum});
  }

  /// After all warps have put their results. Ends with a barrier.
  __device__ void combine(int rows) {
    if constexpr (C::bug != attention_bug::merge_without_barrier) __syncthreads();
    const int thread = static_cast<int>(threadIdx.x);
    if (thread < rows) choose_factors(thread);
    __syncthreads();
    for (int i = thread; i < rows * C::dim; i += C::threads) {
      const int row = i / C::dim;
      float sum = 0;
#pragma unroll
      for (int warp = 0; warp < C::warps; ++warp) {
        const float factor = load_shared(warp_factors_ + warp * C::tile_rows + row);
        sum = fmaf(load_shared(output(warp, row) + i % C::dim), factor, sum);
      }
      const float2 factors = load_shared(folds_ + row);
      fold_factors f;
      f.keep = factors.x;
      f.add = factors.y;
      store_shared(folded_ + i, fold_output(load_shared(folded_ + i), sum, f));
    }
    __syncthreads();
  }

  /// Writes the rows of the tile: partial results as they are, final ones divided.
  __device__ void write(const attention_item& item,
                        const attention_arguments<typename C::T, typename C::KV>& a) const {
    constexpr int vectors = C::dim / 8;
    for (int i = static_cast<int>(threadIdx.x); i < item.packed * vectors; i += C::threads) {
      const int row = i / vectors;
      const int column = i % vectors * 8;
      const float* from = folded_ + row * C::dim + column;
      const auto low = load_shared(reinterpret_cast<const float4*>(from));
      const auto high = load_shared(reinterpret_cast<const float4*>(from) + 1);
      const float2 sums = load_shared(folded_sums_ + row);
      if (item.partial >= 0) {
        const long long at = static_cast<long long>(item.partial + row) * gridDim.y + blockIdx.y;
        auto* to = reinterpret_cast<float4*>(a.partial_out + at * C::dim + column);
        store_global(to, low);
        store_global(to + 1, high);
        if (column == 0) store_global(a.partial_sums + at, sums);
      } else {
        using T = typename C::T;
        const float f = final_factor(sums.y, a.value_scale);
        const uint4 bits{pack<T>(low.x * f, low.y * f), pack<T>(low.z * f, low.w * f),
                         pack<T>(high.x * f, high.y * f), pack<T>(high.z * f, high.w * f)};
        const long long at = head_offset(item, row, a.group, C::dim, a.out_stride);
        store_global(reinterpret_cast<uint4*>(a.out + at + column), bits);
      }
    }
  }

 private:
  __device__ void choose_factors(int row) {
    row_sums run;
    for (int warp = 0; warp < C::warps; ++warp) {
      run.maximum = fmaxf(run.maximum, sums_of(warp, row).x);
    }
    const float base = run.maximum == -INFINITY ? 0.0F : run.maximum;
    for (int warp = 0; warp < C::warps; ++warp) {
      const float2 sums = sums_of(warp, row);
      const float factor = exp2_approximate(sums.x - base);
      run.sum = fmaf(sums.y, factor, run.sum);
      store_shared(warp_factors_ + warp * C::tile_rows + row, factor);
    }
    const float2 former = load_shared(folded_sums_ + row);
    const fold_factors f = fold({former.x, former.y}, run);
    store_shared(folds_ + row, float2{f.keep, f.add});
    store_shared(folded_sums_ + row, float2{f.sums.maximum, f.sums.sum});
  }

  __device__ float2 sums_of(int warp, int row) const {
    return load_shared(warp_sums_ + warp * C::tile_rows + row);
  }

  float* outputs_;
  float* folded_;
  float2* warp_sums_;
  float* warp_factors_;
  float2* folds_;
  float2* folded_sums_;
};

}  // namespace octavo::gpu
