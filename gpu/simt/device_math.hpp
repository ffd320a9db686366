// CUDA's arithmetic that the toolkit's headers give to devices only, by its own
// names in the global namespace. Included by gpu/cuda.hpp only. Functions that a
// device approximates are computed exactly here.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <vector_functions.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

// NOLINTBEGIN: the names are CUDA's.
using std::isfinite;
using std::isinf;
using std::isnan;

inline int min(int a, int b) {
  return a < b ? a : b;
}
inline int max(int a, int b) {
  return a > b ? a : b;
}
inline unsigned min(unsigned a, unsigned b) {
  return a < b ? a : b;
}
inline unsigned max(unsigned a, unsigned b) {
  return a > b ? a : b;
}
inline unsigned min(int a, unsigned b) {
  return min(static_cast<unsigned>(a), b);
}
inline unsigned max(int a, unsigned b) {
  return max(static_cast<unsigned>(a), b);
}
inline unsigned min(unsigned a, int b) {
  return min(a, static_cast<unsigned>(b));
}
inline unsigned max(unsigned a, int b) {
  return max(a, static_cast<unsigned>(b));
}
inline long min(long a, long b) {
  return a < b ? a : b;
}
inline long max(long a, long b) {
  return a > b ? a : b;
}
inline long long min(long long a, long long b) {
  return a < b ? a : b;
}
inline long long max(long long a, long long b) {
  return a > b ? a : b;
}
inline unsigned long min(unsigned long a, unsigned long b) {
  return a < b ? a : b;
}
inline unsigned long max(unsigned long a, unsigned long b) {
  return a > b ? a : b;
}
inline unsigned long long min(unsigned long long a, unsigned long long b) {
  return a < b ? a : b;
}
inline unsigned long long max(unsigned long long a, unsigned long long b) {
  return a > b ? a : b;
}
inline float min(float a, float b) {
  return std::fmin(a, b);
}
inline float max(float a, float b) {
  return std::fmax(a, b);
}

// glibc declares the names with two underscores for its own use.
inline float __expf(float x) noexcept {
  return std::exp(x);
}
inline float __logf(float x) noexcept {
  return std::log(x);
}
inline float __log2f(float x) noexcept {
  return std::log2(x);
}
inline float __powf(float x, float y) noexcept {
  return std::pow(x, y);
}
inline float __sinf(float x) noexcept {
  return std::sin(x);
}
inline float __cosf(float x) noexcept {
  return std::cos(x);
}
inline float rsqrtf(float x) {
  return 1.0F / std::sqrt(x);
}
inline float __frsqrt_rn(float x) {
  return rsqrtf(x);
}
inline float __frcp_rn(float x) {
  return 1.0F / x;
}
inline float __fsqrt_rn(float x) {
  return std::sqrt(x);
}
inline float __fdividef(float x, float y) {
  return x / y;
}
inline float __fdiv_rn(float x, float y) {
  return x / y;
}
inline float __fadd_rn(float x, float y) {
  return x + y;
}
inline float __fsub_rn(float x, float y) {
  return x - y;
}
inline float __fmul_rn(float x, float y) {
  return x * y;
}
inline float __fmaf_rn(float x, float y, float z) {
  return std::fma(x, y, z);
}
inline float __saturatef(float x) {
  return std::isnan(x) ? 0.0F : std::clamp(x, 0.0F, 1.0F);
}
inline int __float2int_rn(float x) {
  return static_cast<int>(std::nearbyint(x));
}
inline int __float2int_rz(float x) {
  return static_cast<int>(x);
}
inline int __float2int_rd(float x) {
  return static_cast<int>(std::floor(x));
}
inline unsigned __float2uint_rn(float x) {
  return static_cast<unsigned>(std::nearbyint(x));
}
inline unsigned __float2uint_rz(float x) {
  return static_cast<unsigned>(x);
}
inline float __int2float_rn(int x) {
  return static_cast<float>(x);
}
inline float __uint2float_rn(unsigned x) {
  return static_cast<float>(x);
}

inline unsigned __float_as_uint(float x) {
  return std::bit_cast<unsigned>(x);
}
inline int __float_as_int(float x) {
  return std::bit_cast<int>(x);
}
inline float __uint_as_float(unsigned x) {
  return std::bit_cast<float>(x);
}
inline float __int_as_float(int x) {
  return std::bit_cast<float>(x);
}
inline int __popc(unsigned x) {
  return std::popcount(x);
}
inline int __popcll(unsigned long long x) {
  return std::popcount(x);
}
inline int __clz(int x) {
  return std::countl_zero(static_cast<unsigned>(x));
}
inline int __clzll(long long x) {
  return std::countl_zero(static_cast<unsigned long long>(x));
}
inline int __ffs(int x) {
  return __builtin_ffs(x);
}
inline int __ffsll(long long x) {
  return __builtin_ffsll(x);
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(std::uint64_t{a} * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  __extension__ using wide = unsigned __int128;
  return static_cast<unsigned long long>(wide{a} * b >> 64);
}

inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (x >> i & 1U) << (31 - i);
  return reversed;
}

inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((std::uint64_t{high} << 32 | low) >> (shift & 31));
}

inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((std::uint64_t{high} << 32 | low) << (shift & 31) >> 32);
}

/// Bytes of {b, a} chosen by the nibbles of `selector`; bit 3 of a nibble spreads the sign.
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const std::uint64_t bytes = std::uint64_t{b} << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned nibble = selector >> 4 * i & 0xf;
    unsigned byte = static_cast<unsigned>(bytes >> 8 * (nibble & 7)) & 0xff;
    if ((nibble & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << 8 * i;
  }
  return result;
}

/// c plus the dot product of four signed bytes each.
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) {
    c += static_cast<std::int8_t>(a >> 8 * i) * static_cast<std::int8_t>(b >> 8 * i);
  }
  return c;
}

template <class T>
T __ldg(const T* p) {
  return *p;
}

inline __half __hfma(__half a, __half b, __half c) {
  return __double2half(static_cast<double>(__half2float(a)) * __half2float(b) + __half2float(c));
}

inline __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
  const double product = static_cast<double>(__bfloat162float(a)) * __bfloat162float(b);
  return __double2bfloat16(product + __bfloat162float(c));
}

inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  return __halves2half2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));
}

inline __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
  return __halves2bfloat162(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));
}

inline __half hexp(__half x) {
  return __float2half(std::exp(__half2float(x)));
}
inline __half hexp2(__half x) {
  return __float2half(std::exp2(__half2float(x)));
}
inline __half hrsqrt(__half x) {
  return __float2half(rsqrtf(__half2float(x)));
}
inline __half2 h2exp2(__half2 x) {
  return __halves2half2(hexp2(x.x), hexp2(x.y));
}
// NOLINTEND
