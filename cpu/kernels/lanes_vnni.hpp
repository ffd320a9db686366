// Vector operations of AVX-512 VNNI: two row tiles at a time in vectors of 512
// bits, and the same arithmetic for a single tile in 256 bits. Products of
// unsigned codes and signed inputs add up in 32 bits, so that all code widths
// take one path.
#pragma once

#include "cpu/kernels/lanes_avx2.hpp"

namespace octavo::cpu {
namespace {

struct vnni_one_tile : avx2_lanes {
  using wide_sum = sum;
  template <int Zero>
  static sum start_half(const std::int16_t* pairs) {
    return _mm256_madd_epi16(pair(pairs), _mm256_set1_epi16(Zero));
  }
  template <int Zero>
  static sum start(const std::int16_t* pairs) {
    if constexpr (Zero == 0) return _mm256_setzero_si256();
    return _mm256_add_epi32(start_half<Zero>(pairs), start_half<Zero>(pairs + 2));
  }
  template <int Zero>
  static sum start_wide(const std::int16_t* pairs) {
    return start<Zero>(pairs);
  }
  static bytes widen(bytes c) { return c; }
  static sum step(sum s, bytes c, bytes x) { return _mm256_dpbusd_epi32(s, c, x); }
  static sum step_wide(sum s, bytes c, bytes x) { return step(s, c, x); }
  static floats total(sum s) { return _mm256_cvtepi32_ps(s); }
  static floats total_wide(sum s) { return total(s); }
};

struct vnni_two_tiles {
  static constexpr int tiles = 2;
  static constexpr int rows_max = 8;
  using floats = __m512;
  using bytes = __m512i;
  using sum = __m512i;
  using wide_sum = __m512i;

  static floats set1(float v) { return _mm512_set1_ps(v); }
  static floats mul(floats a, floats b) { return _mm512_mul_ps(a, b); }
  static floats add(floats a, floats b) { return _mm512_add_ps(a, b); }
  static floats fma(floats a, floats b, floats c) { return _mm512_fmadd_ps(a, b, c); }
  static floats negated(floats a) { return _mm512_xor_ps(a, _mm512_set1_ps(-0.0F)); }

  static __m256i two_halves(const std::byte* p, std::size_t apart) {
    return _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + apart)), 1);
  }
  static __m128i two_quarters(const std::byte* p, std::size_t apart) {
    return _mm_unpacklo_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)),
                              _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + apart)));
  }
  static floats halves(const std::byte* p, std::size_t apart) {
    return _mm512_cvtph_ps(two_halves(p, apart));
  }
  static floats bfloats(const std::byte* p, std::size_t apart) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(two_halves(p, apart)), 16));
  }
  static floats singles(const std::byte* p, std::size_t apart) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(avx2_floats::singles(p, 0)),
                              avx2_floats::singles(p + apart, 0), 1);
  }
  static floats small_floats(const std::byte* p, std::size_t apart) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(avx2_floats::small_floats(p, 0)),
                              avx2_floats::small_floats(p + apart, 0), 1);
  }
  static floats unsigned_bytes(const std::byte* p, std::size_t apart) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(two_quarters(p, apart)));
  }
  static floats signed_bytes(const std::byte* p, std::size_t apart) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(two_quarters(p, apart)));
  }
  static void store(float* y, floats v, std::size_t count) {
    const auto mask = static_cast<__mmask16>(count >= 16 ? 0xFFFFU : (1U << count) - 1U);
    _mm512_mask_storeu_ps(y, mask, v);
  }

  static bytes load(const std::byte* p, std::size_t apart) {
    return _mm512_inserti64x4(
        _mm512_castsi256_si512(_mm256_load_si256(reinterpret_cast<const __m256i*>(p))),
        _mm256_load_si256(reinterpret_cast<const __m256i*>(p + apart)), 1);
  }
  static bytes low_nibbles(bytes v) { return _mm512_and_si512(v, _mm512_set1_epi8(15)); }
  static bytes high_nibbles(bytes v) { return low_nibbles(_mm512_srli_epi16(v, 4)); }
  static bytes either(bytes a, bytes b) { return _mm512_or_si512(a, b); }
  template <int From, int Count, int To>
  static bytes move_bits(bytes v) {
    if constexpr (From < To) v = _mm512_slli_epi16(v, static_cast<unsigned>(To - From));
    if constexpr (From > To) v = _mm512_srli_epi16(v, static_cast<unsigned>(From - To));
    return _mm512_and_si512(v, _mm512_set1_epi8(((1 << Count) - 1) << To));
  }
  static bytes four(const std::int8_t* x) {
    std::int32_t packed;
    __builtin_memcpy(&packed, x, 4);
    return _mm512_set1_epi32(packed);
  }

  template <int Zero>
  static sum start_half(const std::int16_t* pairs) {
    std::int32_t packed;
    __builtin_memcpy(&packed, pairs, 4);
    return _mm512_madd_epi16(_mm512_set1_epi32(packed), _mm512_set1_epi16(Zero));
  }
  template <int Zero>
  static sum start(const std::int16_t* pairs) {
    if constexpr (Zero == 0) return _mm512_setzero_si512();
    return _mm512_add_epi32(start_half<Zero>(pairs), start_half<Zero>(pairs + 2));
  }
  template <int Zero>
  static sum start_wide(const std::int16_t* pairs) {
    return start<Zero>(pairs);
  }
  static bytes widen(bytes c) { return c; }
  static sum step(sum s, bytes c, bytes x) { return _mm512_dpbusd_epi32(s, c, x); }
  static sum step_wide(sum s, bytes c, bytes x) { return step(s, c, x); }
  static floats total(sum s) { return _mm512_cvtepi32_ps(s); }
  static floats total_wide(sum s) { return total(s); }
};

}  // namespace
}  // namespace octavo::cpu
