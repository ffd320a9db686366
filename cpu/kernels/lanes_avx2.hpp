// Vector operations of AVX2, FMA and F16C: eight floats, or 32 bytes of codes.
// For translation units compiled with these flags only; every unit gets its own
// copy, so that no other one can be linked to it by accident.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace octavo::cpu {
namespace {

/// Operations on floats that the AVX-512 unit uses as well.
struct avx2_floats {
  static constexpr int tiles = 1;
  static constexpr int rows_max = 8;
  static constexpr int width = 8;
  using floats = __m256;

  static floats set1(float v) { return _mm256_set1_ps(v); }
  static floats load_floats(const float* p) { return _mm256_loadu_ps(p); }
  static floats add(floats a, floats b) { return _mm256_add_ps(a, b); }
  static floats sub(floats a, floats b) { return _mm256_sub_ps(a, b); }
  static floats mul(floats a, floats b) { return _mm256_mul_ps(a, b); }
  static floats div(floats a, floats b) { return _mm256_div_ps(a, b); }
  static floats fma(floats a, floats b, floats c) { return _mm256_fmadd_ps(a, b, c); }
  static floats negated(floats a) { return _mm256_xor_ps(a, _mm256_set1_ps(-0.0F)); }

  // Where one operand is NaN, the second is taken.
  static floats min(floats a, floats b) { return _mm256_min_ps(a, b); }
  static floats max(floats a, floats b) { return _mm256_max_ps(a, b); }
  static float first(floats v) { return _mm256_cvtss_f32(v); }
  static floats folded_halves(floats v) { return _mm256_permute2f128_ps(v, v, 1); }
  static floats folded_quarters(floats v) { return _mm256_permute_ps(v, 0x4E); }
  static floats folded_eighths(floats v) { return _mm256_permute_ps(v, 0xB1); }
  static floats rounded(floats v) {
    return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  /// 2^n of whole numbers -126 .. 127.
  static floats power_of_two(floats n) {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
  }
  /// 0 where a < b, else v; NaN passes.
  static floats zero_where_less(floats a, floats b, floats v) {
    return _mm256_andnot_ps(_mm256_cmp_ps(a, b, _CMP_LT_OQ), v);
  }
  /// v in the lanes begin .. end - 1, else -infinity; positions relative to lane 0.
  static floats only_lanes(floats v, int begin, int end) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i inside = _mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(begin), lane),
                                               _mm256_cmpgt_epi32(_mm256_set1_epi32(end), lane));
    return _mm256_blendv_ps(_mm256_set1_ps(-__builtin_inff()), v, _mm256_castsi256_ps(inside));
  }

  static void store_halves(std::byte* p, floats v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  static floats halves(const std::byte* p, std::size_t = 0) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static floats bfloats(const std::byte* p, std::size_t) {
    const __m128i raw = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(raw), 16));
  }
  static floats singles(const std::byte* p, std::size_t) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(p));
  }
  /// E4M3: exponent and mantissa moved into a float's, which makes values 2^120 too
  /// small; exact, subnormals too. All ones below the sign are NaN.
  static floats small_floats(const std::byte* p, std::size_t) {
    const __m256i v = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
    const __m256i low = _mm256_and_si256(v, _mm256_set1_epi32(0x7F));
    const __m256i sign = _mm256_slli_epi32(_mm256_xor_si256(v, low), 24);
    const __m256i nan = _mm256_cmpeq_epi32(low, _mm256_set1_epi32(0x7F));
    const __m256 magnitude =
        _mm256_mul_ps(_mm256_castsi256_ps(_mm256_slli_epi32(low, 20)), _mm256_set1_ps(0x1p120F));
    return _mm256_or_ps(magnitude, _mm256_castsi256_ps(_mm256_or_si256(sign, nan)));
  }
  static floats unsigned_bytes(const std::byte* p, std::size_t) {
    return _mm256_cvtepi32_ps(
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }
  static floats signed_bytes(const std::byte* p, std::size_t) {
    return _mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }

  /// Stores the first `count` of the lanes, at most all.
  static void store(float* y, floats v, std::size_t count) {
    if (count >= 8) {
      _mm256_storeu_ps(y, v);
      return;
    }
    alignas(32) float lanes[8];
    _mm256_store_ps(lanes, v);
    for (std::size_t i = 0; i < count; ++i) y[i] = lanes[i];
  }
};

/// Sums of products: pairs of byte products add up in 16 bits over a whole
/// block, and one multiply by ones widens them. 16-bit sums may wrap on the way
/// when codes are offset, but what they end on fits: 16 x 127 x 16.
struct avx2_lanes : avx2_floats {
  using bytes = __m256i;
  using sum = __m256i;       ///< 16-bit
  using wide_sum = __m256i;  ///< 32-bit
  struct wide {
    __m256i magnitude;
    __m256i sign;
  };

  static bytes load(const std::byte* p, std::size_t) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(p));
  }
  static bytes low_nibbles(bytes v) { return _mm256_and_si256(v, _mm256_set1_epi8(15)); }
  static bytes high_nibbles(bytes v) { return low_nibbles(_mm256_srli_epi16(v, 4)); }
  static bytes either(bytes a, bytes b) { return _mm256_or_si256(a, b); }
  /// Bits From .. From + Count - 1 of every byte, moved to bit To.
  template <int From, int Count, int To>
  static bytes move_bits(bytes v) {
    if constexpr (From < To) v = _mm256_slli_epi16(v, To - From);
    if constexpr (From > To) v = _mm256_srli_epi16(v, From - To);
    return _mm256_and_si256(v, _mm256_set1_epi8(((1 << Count) - 1) << To));
  }
  /// Four inputs, repeated for every row.
  static bytes four(const std::int8_t* x) {
    std::int32_t packed;
    __builtin_memcpy(&packed, x, 4);
    return _mm256_set1_epi32(packed);
  }

  static __m256i pair(const std::int16_t* pairs) {
    std::int32_t packed;
    __builtin_memcpy(&packed, pairs, 4);
    return _mm256_set1_epi32(packed);
  }
  template <int Zero>
  static sum start_half(const std::int16_t* pairs) {
    return _mm256_slli_epi16(pair(pairs), __builtin_ctz(Zero));
  }
  template <int Zero>
  static sum start(const std::int16_t* pairs) {
    if constexpr (Zero == 0) return _mm256_setzero_si256();
    return _mm256_slli_epi16(_mm256_add_epi16(pair(pairs), pair(pairs + 2)),
                             __builtin_ctz(static_cast<unsigned>(Zero) | 0x8000U));
  }
  static sum step(sum s, bytes c, bytes x) {
    return _mm256_add_epi16(s, _mm256_maddubs_epi16(c, x));
  }
  static floats total(sum s) {
    return _mm256_cvtepi32_ps(_mm256_madd_epi16(s, _mm256_set1_epi16(1)));
  }

  // Codes of 8 bits would overflow 16-bit sums: signed, one product pair at a time.
  template <int Zero>
  static wide_sum start_wide(const std::int16_t*) {
    return _mm256_setzero_si256();
  }
  static wide widen(bytes c) {
    const __m256i sign = _mm256_xor_si256(c, _mm256_set1_epi8(-128));
    return {_mm256_abs_epi8(sign), sign};
  }
  static wide_sum step_wide(wide_sum s, const wide& c, bytes x) {
    const __m256i products = _mm256_maddubs_epi16(c.magnitude, _mm256_sign_epi8(x, c.sign));
    return _mm256_add_epi32(s, _mm256_madd_epi16(products, _mm256_set1_epi16(1)));
  }
  static floats total_wide(wide_sum s) { return _mm256_cvtepi32_ps(s); }
};

/// 32 floats to int8 with one scale; see quantized_rows.
inline void avx2_quantize_block(const float* values, std::int8_t* codes, float* scale, float* sum,
                                std::int16_t* pairs) {
  __m256 v[4];
  __m256i largest = _mm256_setzero_si256();
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm256_loadu_ps(values + 8 * i);
    // As integers, magnitudes order like floats, with infinity and NaN on top.
    const __m256i magnitude =
        _mm256_and_si256(_mm256_castps_si256(v[i]), _mm256_set1_epi32(0x7FFFFFFF));
    largest = _mm256_max_epi32(largest, magnitude);
  }
  __m128i top =
      _mm_max_epi32(_mm256_castsi256_si128(largest), _mm256_extracti128_si256(largest, 1));
  top = _mm_max_epi32(top, _mm_shuffle_epi32(top, 0x4E));
  top = _mm_max_epi32(top, _mm_shuffle_epi32(top, 0xB1));
  const float amax = _mm_cvtss_f32(_mm_castsi128_ps(top));
  const bool finite = _mm_cvtsi128_si32(top) < 0x7F800000;
  const bool tiny = amax < 0x1p-100F;
  const float inverse = finite && !tiny ? 127.0F / amax : 0.0F;
  __m256i q[4];
  for (int i = 0; i < 4; ++i) {
    const __m256 scaled =
        finite ? _mm256_mul_ps(v[i], _mm256_set1_ps(inverse)) : _mm256_setzero_ps();
    q[i] = _mm256_cvtps_epi32(scaled);
  }
  // Packing works within halves of 128 bits; the permutation restores the order.
  const __m256i packed =
      _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
  const __m256i c = _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes), c);
  // Negated sums of codes 0, 1 and of 2, 3 of every four, for each half.
  __m256i p = _mm256_maddubs_epi16(_mm256_set1_epi8(1), c);
  p = _mm256_add_epi16(p, _mm256_shuffle_epi32(p, 0x4E));
  p = _mm256_add_epi16(p, _mm256_shuffle_epi32(p, 0xB1));
  p = _mm256_sub_epi16(_mm256_setzero_si256(), p);
  const int first = _mm_cvtsi128_si32(_mm256_castsi256_si128(p));
  const int second = _mm_cvtsi128_si32(_mm256_extracti128_si256(p, 1));
  __builtin_memcpy(pairs, &first, 4);
  __builtin_memcpy(pairs + 2, &second, 4);
  *scale = finite ? (tiny ? 0.0F : amax / 127.0F) : __builtin_nanf("");
  *sum = *scale * static_cast<float>(-(pairs[0] + pairs[1] + pairs[2] + pairs[3]));
}

}  // namespace
}  // namespace octavo::cpu
