// The second kernel of sampling.hpp: sums of weights, of each chunk where the whole
// vocabulary is drawn from, else of bins of the logarithm of the weight.
#pragma once

#include "gpu/kernels/sampling/chunks.cuh"

namespace octavo::gpu {

struct weigh_memory {
  chunk_memory chunk;
  mass_t masses[bins];
  unsigned counts[bins];
  mass_t scratch[block_scratch];
};

__device__ inline void weigh_whole(const sampled_row& r, int chunk, token_range range,
                                   const row_weights& weights, weigh_memory& m) {
  mass_t mass = 0;
  int last = -1;
  int nan = 0;
  for (int i = threadIdx.x; i < range.count; i += sampling_threads) {
    const float x = weights.exponent(m.chunk.logits[i]);
    const float weight = weight_of(x);
    if (weight != 0) last = range.first + i;  // NaN is not zero
    if (x != x) {
      nan = 1;
    } else {
      mass += mass_of(weight);
    }
  }
  mass = reduce_block(mass, mass_t{0}, m.scratch, sum_of());
  last = reduce_block(last, -1, reinterpret_cast<int*>(m.scratch), largest_of());
  nan = __syncthreads_or(nan);
  if (threadIdx.x != 0) return;
  store_global(&r.summary(chunk)->mass, mass);
  atomicMax(&r.state()->last_weighed, last);
  if (nan != 0) atomicOr(&r.state()->has_nan, 1);
}

__device__ inline void weigh_bins(const sampled_row& r, token_range range,
                                  const row_weights& weights, weigh_memory& m) {
  for (int i = threadIdx.x; i < bins; i += sampling_threads) {
    m.masses[i] = 0;
    m.counts[i] = 0;
  }
  __syncthreads();
  mass_t likely = 0;
  int nan = 0;
  for (int i = threadIdx.x; i < range.count; i += sampling_threads) {
    const unsigned key = key_of(m.chunk.logits[i]);
    if (key == 0) nan = 1;
    if (key <= minus_infinity_key) continue;
    const float x = weights.exponent(m.chunk.logits[i]);
    const float weight = weight_of(x);
    const mass_t mass = mass_of(weight);
    const int bin = bin_of(x);
    atomicAdd(&m.counts[bin], 1U);
    if (mass != 0) atomicAdd(&m.masses[bin], mass);
    if (!(weight < r.how.min_p)) likely += mass;
  }
  likely = reduce_block(likely, mass_t{0}, m.scratch, sum_of());
  nan = __syncthreads_or(nan);
  for (int i = threadIdx.x; i < bins; i += sampling_threads) {
    if (m.counts[i] == 0) continue;
    atomicAdd(r.bin_counts() + i, m.counts[i]);
    if (m.masses[i] != 0) atomicAdd(r.bin_masses() + i, m.masses[i]);
  }
  if (threadIdx.x != 0) return;
  if (likely != 0) atomicAdd(&r.state()->likely_mass, likely);
  if (nan != 0) atomicOr(&r.state()->has_nan, 1);
}

__global__ void __launch_bounds__(sampling_threads) weigh_chunks(sampling_arguments a) {
  OCTAVO_SHARED(raw);
  auto& m = *reinterpret_cast<weigh_memory*>(raw);
  const int chunk = static_cast<int>(blockIdx.x);
  const sampled_row r(a, static_cast<int>(blockIdx.y));
  if (!r.draws()) return;
  const token_place most = likeliest<&chunk_summary::adjusted>(r, m.scratch);
  if (key_at(most) <= minus_infinity_key) return;
  const row_weights weights{logit_at(most), r.temperature()};
  const token_range range = load_adjusted(r, chunk, m.chunk);
  if (r.is_cut()) {
    weigh_bins(r, range, weights, m);
  } else {
    weigh_whole(r, chunk, range, weights, m);
  }
}

}  // namespace octavo::gpu
