// The last kernel of sampling.hpp: a block for each row chooses the token, counts it in
// the history, and writes log-probabilities.
#pragma once

#include "gpu/kernels/sampling/cut.cuh"

namespace octavo::gpu {

inline constexpr int digit_bits = 8;
inline constexpr int digits = 1 << digit_bits;
static_assert(digits == sampling_threads);

struct choose_memory {
  chunk_memory chunk;
  mass_t masses[digits];
  unsigned counts[digits];
  mass_t scratch[block_scratch];
  bin_part found;
  token_place place;
  int token;
};

// ---- in the order of ids -----------------------------------------------------------

/// The first token, by id, at which the sum of weights exceeds the draw.
__device__ inline int draw_by_id(const sampled_row& r, const row_weights& weights,
                                 choose_memory& m) {
  if (load_global(&r.state()->has_nan) != 0) return load_global(&r.state()->last_weighed);
  const int thread = static_cast<int>(threadIdx.x);
  const mass_t own = thread < r.a.chunks ? load_global(&r.summary(thread)->mass) : 0;
  const auto of_chunks = scan_block(own, m.scratch);
  mass_t target = draw_target(uniform_of(r.how.seed, r.how.counter), of_chunks.total);
  if (of_chunks.before <= target && target < of_chunks.before + own) {
    m.found = {of_chunks.before, own, 0, 0, thread};
  }
  __syncthreads();
  target -= m.found.mass_before;
  const token_range range = load_adjusted(r, m.found.bin, m.chunk);
  constexpr int run = chunk_tokens / sampling_threads;
  const auto mass_at = [&](int i) -> mass_t {
    return i < range.count ? mass_of(weight_of(weights.exponent(m.chunk.logits[i]))) : 0;
  };
  mass_t of_run = 0;
  for (int i = thread * run; i < (thread + 1) * run; ++i) of_run += mass_at(i);
  mass_t sum = scan_block(of_run, m.scratch).before;
  if (sum <= target && target < sum + of_run) {
    int i = thread * run;
    while ((sum += mass_at(i)) <= target) ++i;
    m.token = range.first + i;
  }
  __syncthreads();
  return m.token;
}

// ---- in the order of likelihood ------------------------------------------------------

/// The search of choose: it looks into bins by radix selection.
struct token_search {
  const sampled_row& r;
  const bin_sums& sums;
  const row_weights& weights;
  choose_memory& m;
  token_place found = 0;  ///< the token where the last search ended

  OCTAVO_DEVICE mass_range tokens(mass_t target) {
    const bin_part part = locate<measure::tokens>(r, sums, target, &m.found);
    if (part.mass == 0) return {part.mass_before, part.mass_before};
    return look_into<measure::tokens>(part, target);
  }

  OCTAVO_DEVICE mass_range masses(mass_t target, mass_t) {
    const bin_part part = locate<measure::masses>(r, sums, target, &m.found);
    return look_into<measure::masses>(part, target);
  }

 private:
  __device__ float exponent(token_place place) const { return weights.exponent(logit_at(place)); }

  /// Calls visit(place) for the tokens of a bin.
  template <class Visit>
  OCTAVO_DEVICE void for_tokens(int bin, Visit visit) {
    const int collected = load_global(&r.state()->collected);
    if (collected <= collected_max) {
      for (int i = threadIdx.x; i < collected; i += sampling_threads) {
        const token_place place = load_global(r.collected() + i);
        if (bin_of(exponent(place)) == bin) visit(place);
      }
      return;
    }
    for (int chunk = 0; chunk < r.a.chunks; ++chunk) {
      const token_range range = load_adjusted(r, chunk, m.chunk);
      for (int i = threadIdx.x; i < range.count; i += sampling_threads) {
        const token_place place = place_of(m.chunk.logits[i], range.first + i);
        if (key_at(place) > minus_infinity_key && bin_of(exponent(place)) == bin) visit(place);
      }
      __syncthreads();
    }
  }

  /// Narrows `part` to those of its tokens that share the next digit of the place where
  /// the sum exceeds `target`; returns the digit.
  template <measure by>
  OCTAVO_DEVICE int narrow(bin_part& part, token_place prefix, int shift, mass_t target) {
    const int digit = digits - 1 - static_cast<int>(threadIdx.x);  // likelier ones first
    m.masses[digit] = 0;
    m.counts[digit] = 0;
    __syncthreads();
    for_tokens(part.bin, [&](token_place place) {
      if (place >> (shift + digit_bits) != prefix) return;
      const int of = static_cast<int>(place >> shift) & (digits - 1);
      atomicAdd(&m.counts[of], 1U);
      atomicAdd(&m.masses[of], mass_of(weight_of(exponent(place))));
    });
    __syncthreads();
    const mass_t mass = m.masses[digit];
    const unsigned count = m.counts[digit];
    const mass_t mass_before = part.mass_before + scan_block(mass, m.scratch).before;
    const unsigned count_before =
        part.count_before + scan_block(count, reinterpret_cast<unsigned*>(m.scratch)).before;
    const mass_t before = by == measure::masses ? mass_before : mass_t{count_before};
    if (before <= target && target < before + (by == measure::masses ? mass : mass_t{count})) {
      m.found = {mass_before, mass, count_before, count, part.bin};
      m.token = digit;
    }
    __syncthreads();
    part = m.found;
    const int chosen = m.token;
    __syncthreads();
    return chosen;
  }

  /// Finds the token of a bin where the sum exceeds `target`; returns the mass up to it.
  template <measure by>
  OCTAVO_DEVICE mass_range look_into(bin_part part, mass_t target) {
    token_place prefix = 0;
    int shift = place_bits;
    while (part.count > 1 && shift > 0) {
      shift -= digit_bits;
      const int digit = narrow<by>(part, prefix, shift, target);
      prefix = prefix << digit_bits | static_cast<token_place>(digit);
    }
    for_tokens(part.bin, [&](token_place place) {
      if (place >> shift == prefix) m.place = place;
    });
    __syncthreads();
    found = m.place;
    __syncthreads();
    const mass_t upto = part.mass_before + mass_of(weight_of(exponent(found)));
    return {upto, upto};
  }
};

__device__ inline int draw_by_likelihood(const sampled_row& r, const row_weights& weights,
                                         choose_memory& m) {
  const bin_sums sums = scan_bins(r, m.scratch);
  token_search search{r, sums, weights, m};
  const mass_t kept = kept_mass(r, sums, search).low;
  const mass_t target = draw_target(uniform_of(r.how.seed, r.how.counter), kept);
  search.masses(target, target);
  return token_at(search.found);
}

// ---- the row's results ---------------------------------------------------------------

__device__ inline int choose_token(const sampled_row& r, token_place raw, choose_memory& m) {
  const token_place most = likeliest<&chunk_summary::adjusted>(r, m.scratch);
  const unsigned key = key_at(most);
  if (!r.draws()) return token_at(key == minus_infinity_key ? raw : most);
  if (key <= minus_infinity_key) return token_at(raw);
  const row_weights weights{logit_of(key), r.temperature()};
  return r.is_cut() ? draw_by_likelihood(r, weights, m) : draw_by_id(r, weights, m);
}

/// Logarithm of the sum of e^logit over the row, raw.
__device__ inline double normalizer(const sampled_row& r, token_place raw, choose_memory& m) {
  const double largest = logit_at(raw);
  double sum = 0;
  for (int c = threadIdx.x; c < r.a.chunks; c += sampling_threads) {
    const double most = logit_at(load_global(&r.summary(c)->raw));
    sum += load_global(&r.summary(c)->raw_sum) * exp(most - largest);
  }
  sum = reduce_block(sum, 0.0, reinterpret_cast<double*>(m.scratch), sum_of());
  return log(sum) + largest;
}

/// Merges the chunks' likeliest tokens.
__device__ inline void write_top(const sampled_row& r, double log_sum, choose_memory& m) {
  const int each = r.tops_wanted();
  token_place previous = ~token_place{0};
  for (int i = 0; i < r.a.top_max; ++i) {
    token_place most = 0;
    for (int e = threadIdx.x; i < each && e < r.a.chunks * each; e += sampling_threads) {
      const token_place place = load_global(r.tops(e / each) + e % each);
      if (place < previous) most = max(most, place);
    }
    most = reduce_block(most, token_place{0}, m.scratch, largest_of());
    if (threadIdx.x == 0) {
      const double logprob = static_cast<double>(logit_at(most)) - log_sum;
      store_global(r.a.top_tokens + r.row * r.a.top_max + i, most != 0 ? token_at(most) : -1);
      store_global(r.a.top_logprobs + r.row * r.a.top_max + i,
                   most != 0 ? static_cast<float>(logprob) : 0.0F);
    }
    previous = most;
  }
}

__global__ void __launch_bounds__(sampling_threads, 2) choose_tokens(sampling_arguments a) {
  OCTAVO_SHARED(shared);
  auto& m = *reinterpret_cast<choose_memory*>(shared);
  const sampled_row r(a, static_cast<int>(blockIdx.x));
  const token_place raw = likeliest<&chunk_summary::raw>(r, m.scratch);
  const int token = choose_token(r, raw, m);
  double log_sum = 0;
  float logprob = 0;
  if (r.how.top_logprobs >= 0) {
    log_sum = normalizer(r, raw, m);
    const double logit = load_global(a.logits + r.row * a.vocabulary + token);
    logprob = static_cast<float>(logit - log_sum);
  }
  write_top(r, log_sum, m);
  if (threadIdx.x != 0) return;
  store_global(a.chosen + r.row, token);
  store_global(a.logprobs + r.row, logprob);
  if (r.has_history()) {
    atomicAdd(a.history + static_cast<std::size_t>(r.how.history) * a.vocabulary + token, 1U);
  }
}

}  // namespace octavo::gpu
