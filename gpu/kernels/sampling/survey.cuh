// The first kernel of sampling.hpp: what is largest in each chunk. It also clears the
// row's part of the workspace for those that follow.
#pragma once

#include "gpu/kernels/sampling/chunks.cuh"

namespace octavo::gpu {

struct survey_memory {
  chunk_memory chunk;
  token_place places[block_scratch];
  double sums[block_scratch];
};

__device__ inline void clear_row(const sampled_row& r, int chunk) {
  for (int i = chunk * sampling_threads + static_cast<int>(threadIdx.x); i < bins;
       i += r.a.chunks * sampling_threads) {
    store_global(r.bin_masses() + i, mass_t{0});
    store_global(r.bin_counts() + i, 0U);
  }
  if (chunk != 0 || threadIdx.x != 0) return;
  store_global(&r.state()->likely_mass, mass_t{0});
  store_global(&r.state()->has_nan, 0);
  store_global(&r.state()->last_weighed, -1);
  store_global(&r.state()->collected, 0);
}

/// The likeliest token of the chunk that comes after `previous`; 0 where none does.
__device__ inline token_place likeliest_after(token_place previous, token_range range,
                                              survey_memory& m) {
  token_place most = 0;
  for (int i = threadIdx.x; i < range.count; i += sampling_threads) {
    const token_place place = place_of(m.chunk.logits[i], range.first + i);
    if (place < previous) most = max(most, place);
  }
  return reduce_block(most, token_place{0}, m.places, largest_of());
}

/// Sum of e^(logit - largest) over the chunk.
__device__ inline double exponential_sum(token_range range, float largest, survey_memory& m) {
  double sum = 0;
  for (int i = threadIdx.x; i < range.count; i += sampling_threads) {
    const float x = m.chunk.logits[i];
    sum += x == largest ? 1.0 : exp(static_cast<double>(__fsub_rn(x, largest)));
  }
  return reduce_block(sum, 0.0, m.sums, sum_of());
}

__device__ inline void write_tops(const sampled_row& r, int chunk, token_range range,
                                  token_place first, survey_memory& m) {
  token_place place = first;
  for (int i = 0; i < r.tops_wanted(); ++i) {
    if (key_at(place) <= minus_infinity_key) place = 0;
    if (threadIdx.x == 0) store_global(r.tops(chunk) + i, place);
    if (place != 0) place = likeliest_after(place, range, m);
  }
}

__global__ void __launch_bounds__(sampling_threads) survey_chunks(sampling_arguments a) {
  OCTAVO_SHARED(raw);
  auto& m = *reinterpret_cast<survey_memory*>(raw);
  const int chunk = static_cast<int>(blockIdx.x);
  const sampled_row r(a, static_cast<int>(blockIdx.y));
  clear_row(r, chunk);
  const token_range range = range_of(r, chunk);
  load_raw(r, range, m.chunk.logits);
  __syncthreads();
  const token_place most = likeliest_after(~token_place{0}, range, m);
  double sum = 0;
  if (r.how.top_logprobs >= 0) {
    sum = exponential_sum(range, logit_at(most), m);
    write_tops(r, chunk, range, most, m);
  }
  token_place adjusted = most;
  if (r.is_adjusted()) {
    adjust(r, range, m.chunk);
    __syncthreads();
    adjusted = likeliest_after(~token_place{0}, range, m);
  }
  if (threadIdx.x != 0) return;
  store_global(&r.summary(chunk)->raw, most);
  store_global(&r.summary(chunk)->adjusted, adjusted);
  store_global(&r.summary(chunk)->raw_sum, sum);
}

}  // namespace octavo::gpu
