// Where top-k, top-p, min-p and the draw end in the order of likelihood. All four are
// prefixes of that order, and found by the same search: first the bin, by sums over
// bins; then, by what the caller knows of the bin, the token.
#pragma once

#include "gpu/kernels/sampling/chunks.cuh"

namespace octavo::gpu {

inline constexpr int bins_per_thread = bins / sampling_threads;

/// Sums over the bins before this thread's, and over all.
struct bin_sums {
  scanned<mass_t> mass;
  scanned<unsigned> count;
};

__device__ inline bin_sums scan_bins(const sampled_row& r, mass_t* scratch) {
  mass_t mass = 0;
  unsigned count = 0;
  for (int i = 0; i < bins_per_thread; ++i) {
    const int bin = static_cast<int>(threadIdx.x) * bins_per_thread + i;
    mass += load_global(r.bin_masses() + bin);
    count += load_global(r.bin_counts() + bin);
  }
  bin_sums sums;
  sums.mass = scan_block(mass, scratch);
  sums.count = scan_block(count, reinterpret_cast<unsigned*>(scratch));
  return sums;
}

/// A bin, or a part of one, and what comes before it.
struct bin_part {
  mass_t mass_before;
  mass_t mass;
  unsigned count_before;
  unsigned count;
  int bin;
};

/// What a search counts.
enum class measure { tokens, masses };

/// The bin in which the sum first exceeds `target`, which is less than the total.
/// All threads take part; `found` is in shared memory.
template <measure by>
OCTAVO_DEVICE bin_part locate(const sampled_row& r, const bin_sums& sums, mass_t target,
                              bin_part* found) {
  bin_part part{sums.mass.before, 0, sums.count.before, 0, 0};
  const bool begun = (by == measure::masses ? part.mass_before : part.count_before) <= target;
  for (int i = 0; begun && i < bins_per_thread; ++i) {
    part.bin = static_cast<int>(threadIdx.x) * bins_per_thread + i;
    part.mass = load_global(r.bin_masses() + part.bin);
    part.count = load_global(r.bin_counts() + part.bin);
    const mass_t upto = by == measure::masses ? part.mass_before + part.mass
                                              : mass_t{part.count_before + part.count};
    if (upto > target) {
      *found = part;
      break;
    }
    part.mass_before += part.mass;
    part.count_before += part.count;
  }
  __syncthreads();
  part = *found;
  __syncthreads();
  return part;
}

/// Bounds of a sum of masses.
struct mass_range {
  mass_t low;
  mass_t high;
};

/// The mass of the tokens that are kept. `search` has
///   mass_range tokens(target)       the mass of the first target + 1 tokens
///   mass_range masses(low, high)    the mass up to the token where it exceeds a target
///                                   within these bounds
template <class Search>
OCTAVO_DEVICE mass_range kept_mass(const sampled_row& r, const bin_sums& sums, Search& search) {
  const sampling_row& how = r.how;
  const bool top_k = how.top_k > 0 && how.top_k < r.a.vocabulary;
  const bool has_nan = load_global(&r.state()->has_nan) != 0;
  mass_range kept{sums.mass.total, sums.mass.total};
  if (top_k && static_cast<unsigned>(how.top_k) < sums.count.total) {
    kept = search.tokens(static_cast<mass_t>(how.top_k - 1));
  }
  // The sampler's total of all weights is NaN where one logit is, and cuts nothing.
  if (how.top_p < 1 && (top_k || !has_nan)) {
    const mass_t most = kept.high;
    kept = search.masses(top_p_target(how.top_p, kept.low), top_p_target(how.top_p, kept.high));
    kept.high = min(kept.high, most);
  }
  if (how.min_p > 0) {
    // The likeliest token is always kept.
    const mass_t likely = max(load_global(&r.state()->likely_mass), mass_t{1});
    kept = {min(kept.low, likely), min(kept.high, likely)};
  }
  return kept;
}

struct bin_range {
  int first;
  int last;
};

/// The search of collect: it knows bins only, and notes which bins must be looked into.
struct bin_search {
  const sampled_row& r;
  const bin_sums& sums;
  bin_part* found;
  bin_range* wanted;  ///< in shared memory
  int noted = 0;

  __device__ void note(int from, int to) {
    if (threadIdx.x == 0) wanted[noted] = {from, to};
    ++noted;
  }

  __device__ bool wants(int bin) const {
    bool is = false;
    for (int i = 0; i < noted; ++i) is = is || (bin >= wanted[i].first && bin <= wanted[i].last);
    return is;
  }

  __device__ mass_range tokens(mass_t target) {
    const bin_part part = locate<measure::tokens>(r, sums, target, found);
    if (part.mass == 0) return {part.mass_before, part.mass_before};
    note(part.bin, part.bin);
    return {max(part.mass_before, unit_mass), part.mass_before + part.mass};
  }

  __device__ mass_range masses(mass_t low, mass_t high) {
    const bin_part from = locate<measure::masses>(r, sums, low, found);
    const bin_part to = low == high ? from : locate<measure::masses>(r, sums, high, found);
    note(from.bin, to.bin);
    return {low + 1, to.mass_before + to.mass};
  }
};

struct collect_memory {
  chunk_memory chunk;
  mass_t scratch[block_scratch];
  bin_part found;
  bin_range wanted[3];
};

/// The third kernel of sampling.hpp: tokens in the bins that a cut or the draw falls in.
__global__ void __launch_bounds__(sampling_threads) collect_candidates(sampling_arguments a) {
  OCTAVO_SHARED(raw);
  auto& m = *reinterpret_cast<collect_memory*>(raw);
  const sampled_row r(a, static_cast<int>(blockIdx.y));
  if (!r.draws() || !r.is_cut()) return;
  const token_place most = likeliest<&chunk_summary::adjusted>(r, m.scratch);
  if (key_at(most) <= minus_infinity_key) return;
  const bin_sums sums = scan_bins(r, m.scratch);
  bin_search search{r, sums, &m.found, m.wanted};
  const mass_range kept = kept_mass(r, sums, search);
  const double uniform = uniform_of(r.how.seed, r.how.counter);
  search.masses(draw_target(uniform, kept.low), draw_target(uniform, kept.high));
  const row_weights weights{logit_at(most), r.temperature()};
  const token_range range = load_adjusted(r, static_cast<int>(blockIdx.x), m.chunk);
  for (int i = threadIdx.x; i < range.count; i += sampling_threads) {
    const float logit = m.chunk.logits[i];
    if (key_of(logit) <= minus_infinity_key) continue;
    if (!search.wants(bin_of(weights.exponent(logit)))) continue;
    const int slot = atomicAdd(&r.state()->collected, 1);
    if (slot < collected_max) {
      store_global(r.collected() + slot, place_of(logit, range.first + i));
    }
  }
}

}  // namespace octavo::gpu
