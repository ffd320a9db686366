// The arithmetic of sampling, equal to that of model/sampling/sampler.cpp: the order
// of tokens, their weights, and the random numbers. Roundings are spelled out where a
// compiler might join two into one.
#pragma once

#include "gpu/kernels/sampling/sampling.hpp"
#include "gpu/ptx.h"

namespace octavo::gpu {

// ---- the order of tokens ---------------------------------------------------------

/// A token's place among all: the larger the likelier; of equal logits the smaller id
/// comes first. The logit's bits, in the order of their values, and the id inverted.
using token_place = unsigned long long;

inline constexpr int id_bits = 20;
inline constexpr unsigned id_mask = (1U << id_bits) - 1;
static_assert(sampling_vocabulary_max <= 1 << id_bits);
/// Bits of a place, rounded up to whole bytes.
inline constexpr int place_bits = 56;

/// NaN comes last, behind -infinity.
inline constexpr unsigned minus_infinity_key = 0x007fffffU;

__device__ inline unsigned key_of(float logit) {
  if (logit != logit) return 0;
  const unsigned bits = __float_as_uint(logit + 0.0F);  // -0 counts as 0
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
}

__device__ inline float logit_of(unsigned key) {
  return __uint_as_float((key >> 31) != 0 ? key & 0x7fffffffU : ~key);
}

__device__ inline token_place place_of(float logit, int token) {
  return static_cast<token_place>(key_of(logit)) << id_bits | (id_mask - token);
}

__device__ inline unsigned key_at(token_place place) {
  return static_cast<unsigned>(place >> id_bits);
}

__device__ inline float logit_at(token_place place) {
  return logit_of(key_at(place));
}

__device__ inline int token_at(token_place place) {
  return static_cast<int>(id_mask - (static_cast<unsigned>(place) & id_mask));
}

// ---- weights ---------------------------------------------------------------------

/// Sums of weights in fixed point; a vocabulary of the most tokens of weight 1 fits.
using mass_t = unsigned long long;
inline constexpr mass_t unit_mass = mass_t{1} << 44;

/// Bins of equal width of the logarithm of the weight; the last holds all the rest,
/// whose masses are zero.
inline constexpr int bins = 2048;
inline constexpr float bins_per_unit = 64;

/// Weighs the logits of a row against the largest.
struct row_weights {
  float largest;
  float temperature;

  /// The logarithm of the weight: 0 or less.
  __device__ float exponent(float logit) const {
    if (logit == largest) return 0;
    return __fdiv_rn(__fsub_rn(logit, largest), temperature);
  }
};

__device__ inline float weight_of(float exponent) {
  if (exponent < -104.0F) return 0;
  return static_cast<float>(exp(static_cast<double>(exponent)));
}

__device__ inline mass_t mass_of(float weight) {
  return static_cast<mass_t>(static_cast<double>(weight) * static_cast<double>(unit_mass) + 0.5);
}

__device__ inline int bin_of(float exponent) {
  const float scaled = exponent * -bins_per_unit;
  return scaled < bins - 1 ? static_cast<int>(scaled) : bins - 1;
}

/// Mass before which a draw with `uniform` ends, of `kept`.
__device__ inline mass_t draw_target(double uniform, mass_t kept) {
  const auto target = static_cast<mass_t>(uniform * static_cast<double>(kept));
  return target < kept ? target : kept - 1;
}

/// Top-p keeps tokens up to the one whose mass, with all before it, exceeds this.
__device__ inline mass_t top_p_target(float top_p, mass_t total) {
  const double limit = ceil(static_cast<double>(top_p) * static_cast<double>(total));
  if (limit < 1) return 0;
  const mass_t target = static_cast<mass_t>(limit) - 1;
  return target < total ? target : total - 1;
}

// ---- random numbers --------------------------------------------------------------

__device__ inline unsigned long long mix_bits(unsigned long long x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// As model::uniform_at.
__device__ inline double uniform_of(unsigned long long seed, unsigned long long counter) {
  const auto bits = mix_bits(mix_bits(seed) ^ (counter * 0xd1342543de82ef95ULL));
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace octavo::gpu
