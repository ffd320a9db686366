// How the kernels of sampling.hpp see their rows: the workspace, and chunks of a row's
// logits in shared memory, adjusted by biases, masks and penalties. Adjusted logits are
// made anew by each kernel; nothing of a vocabulary's size is written.
#pragma once

#include "gpu/kernels/common/block.cuh"
#include "gpu/kernels/sampling/weights.cuh"

namespace octavo::gpu {

inline constexpr int sampling_threads = 256;
inline constexpr int chunk_tokens = 4096;
/// choose gives each thread a chunk.
static_assert(sampling_vocabulary_max <= chunk_tokens * sampling_threads);
/// Collected tokens of a row; where more are wanted, choose reads all logits.
inline constexpr int collected_max = 4096;

/// What survey and weigh find out about a chunk.
struct chunk_summary {
  token_place raw;       // of the largest logit as it came
  token_place adjusted;  // of the largest after biases, masks and penalties
  double raw_sum;        // of e^(logit - largest), raw
  mass_t mass;           // of rows that draw from the whole vocabulary
};

struct row_state {
  mass_t likely_mass;  // of tokens that min-p keeps
  int has_nan;
  int last_weighed;  // the largest id whose weight is not zero
  int collected;
  int unused;
};

/// The workspace; strides are in elements of a row.
struct sampling_workspace {
  row_state* states;         // [rows]
  chunk_summary* summaries;  // [rows, chunks]
  mass_t* bin_masses;        // [rows, bins]
  token_place* collected;    // [rows, collected_max]
  token_place* tops;         // [rows, chunks, top_max]
  unsigned* bin_counts;      // [rows, bins]
};

struct sampling_arguments {
  const float* logits;
  const sampling_row* how;
  const token_bias* biases;
  const int* tokens;
  unsigned* history;
  int* chosen;
  float* logprobs;
  int* top_tokens;
  float* top_logprobs;
  int vocabulary;
  int chunks;
  int top_max;
  bool any_draws;
  sampling_workspace work;
};

/// One row of the arguments.
struct sampled_row {
  const sampling_arguments& a;
  std::size_t row;
  const sampling_row& how;  ///< on the device

  __device__ sampled_row(const sampling_arguments& arguments, int number)
      : a(arguments), row(static_cast<std::size_t>(number)), how(arguments.how[number]) {}

  __device__ bool draws() const { return a.any_draws && !(how.temperature < 1e-5F); }
  __device__ bool is_cut() const { return how.top_k > 0 || how.top_p < 1 || how.min_p > 0; }
  __device__ bool has_history() const { return how.history >= 0 && a.history != nullptr; }
  __device__ bool is_adjusted() const {
    return has_history() || how.biases.end > how.biases.begin ||
           how.allowed.end > how.allowed.begin || how.banned.end > how.banned.begin;
  }
  /// Likeliest tokens to report.
  __device__ int tops_wanted() const { return max(min(how.top_logprobs, a.top_max), 0); }
  __device__ float temperature() const { return max(how.temperature, 1e-2F); }

  __device__ row_state* state() const { return a.work.states + row; }
  __device__ chunk_summary* summary(int chunk) const {
    return a.work.summaries + row * a.chunks + chunk;
  }
  __device__ mass_t* bin_masses() const { return a.work.bin_masses + row * bins; }
  __device__ unsigned* bin_counts() const { return a.work.bin_counts + row * bins; }
  __device__ token_place* collected() const { return a.work.collected + row * collected_max; }
  __device__ token_place* tops(int chunk) const {
    return a.work.tops + (row * a.chunks + chunk) * a.top_max;
  }
};

struct chunk_memory {
  float logits[chunk_tokens];
  unsigned allowed[chunk_tokens / 32];
};

/// A part of the vocabulary.
struct token_range {
  int first;
  int count;
};

__device__ inline token_range range_of(const sampled_row& r, int chunk) {
  const int first = chunk * chunk_tokens;
  return {first, min(chunk_tokens, r.a.vocabulary - first)};
}

__device__ inline void load_raw(const sampled_row& r, token_range range, float* logits) {
  const float* from = r.a.logits + r.row * r.a.vocabulary + range.first;
  for (int i = threadIdx.x; i < range.count; i += sampling_threads) {
    logits[i] = load_global(from + i);
  }
}

// A token's entries stand together; the thread that has the first adds them all.
__device__ inline void add_biases(const sampled_row& r, token_range range, float* logits) {
  for (int e = r.how.biases.begin + static_cast<int>(threadIdx.x); e < r.how.biases.end;
       e += sampling_threads) {
    const int token = load_global(r.a.biases + e).token;
    const unsigned at = static_cast<unsigned>(token - range.first);
    if (at >= static_cast<unsigned>(range.count)) continue;
    if (e > r.how.biases.begin && load_global(r.a.biases + e - 1).token == token) continue;
    for (int same = e; same < r.how.biases.end; ++same) {
      const token_bias bias = load_global(r.a.biases + same);
      if (bias.token != token) break;
      logits[at] = __fadd_rn(logits[at], bias.value);
    }
  }
}

/// Calls visit(index in the chunk) for the tokens of a list that lie in the chunk.
template <class Visit>
__device__ void for_listed(const sampled_row& r, list_range list, token_range range, Visit visit) {
  for (int e = list.begin + static_cast<int>(threadIdx.x); e < list.end; e += sampling_threads) {
    const unsigned at = static_cast<unsigned>(load_global(r.a.tokens + e) - range.first);
    if (at < static_cast<unsigned>(range.count)) visit(static_cast<int>(at));
  }
}

__device__ inline void keep_allowed(const sampled_row& r, token_range range, chunk_memory& m) {
  for (int i = threadIdx.x; i < chunk_tokens / 32; i += sampling_threads) m.allowed[i] = 0;
  __syncthreads();
  for_listed(r, r.how.allowed, range,
             [&](int at) { atomicOr(&m.allowed[at / 32], 1U << at % 32); });
  __syncthreads();
  for (int i = threadIdx.x; i < range.count; i += sampling_threads) {
    if ((m.allowed[i / 32] >> i % 32 & 1) == 0) m.logits[i] = logit_of(minus_infinity_key);
  }
}

__device__ inline float penalized(float logit, unsigned word, const sampling_row& how) {
  const unsigned times = word & ~history_prompt_bit;
  if (times != 0) {
    const float product = __fmul_rn(how.frequency_penalty, static_cast<float>(times));
    logit = __fsub_rn(logit, __fadd_rn(product, how.presence_penalty));
  }
  if (word == 0 || how.repetition_penalty == 1) return logit;
  return logit > 0 ? __fdiv_rn(logit, how.repetition_penalty)
                   : __fmul_rn(logit, how.repetition_penalty);
}

/// Biases, masks and penalties of a loaded chunk, in this order. Threads must meet
/// before (the chunk is complete) and after.
__device__ inline void adjust(const sampled_row& r, token_range range, chunk_memory& m) {
  add_biases(r, range, m.logits);
  __syncthreads();
  if (r.how.allowed.end > r.how.allowed.begin) {
    keep_allowed(r, range, m);
    __syncthreads();
  }
  for_listed(r, r.how.banned, range, [&](int at) { m.logits[at] = logit_of(minus_infinity_key); });
  __syncthreads();
  if (!r.has_history()) return;
  const unsigned* words =
      r.a.history + static_cast<std::size_t>(r.how.history) * r.a.vocabulary + range.first;
  for (int i = threadIdx.x; i < range.count; i += sampling_threads) {
    m.logits[i] = penalized(m.logits[i], load_global(words + i), r.how);
  }
}

/// Loads a chunk's adjusted logits; all threads may read them after.
__device__ inline token_range load_adjusted(const sampled_row& r, int chunk, chunk_memory& m) {
  const token_range range = range_of(r, chunk);
  load_raw(r, range, m.logits);
  __syncthreads();
  if (r.is_adjusted()) {
    adjust(r, range, m);
    __syncthreads();
  }
  return range;
}

/// The place of the row's likeliest token, raw or adjusted.
template <token_place chunk_summary::*member>
__device__ token_place likeliest(const sampled_row& r, token_place* scratch) {
  token_place most = 0;
  for (int c = threadIdx.x; c < r.a.chunks; c += sampling_threads) {
    most = max(most, load_global(&(r.summary(c)->*member)));
  }
  return reduce_block(most, token_place{0}, scratch, largest_of());
}

}  // namespace octavo::gpu
