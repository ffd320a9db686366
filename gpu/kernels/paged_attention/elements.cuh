// Elements of paged attention: pairs of T in a register, and keys and values as they
// come out of pages, which may be e4m3 bytes.
//
// A register of four e4m3 bytes is decoded to bytes (0, 2) and bytes (1, 3), which
// needs no permutation. Keys and values take their dimensions in that order: the
// order within a dot product is free as long as the query has the same, and output
// columns are put right when they are written.
#pragma once

#include <type_traits>

#include "gpu/cuda.hpp"
#include "gpu/ptx.h"

namespace octavo::gpu {

template <class T>
using pair_of = std::conditional_t<std::is_same_v<T, __half>, __half2, __nv_bfloat162>;

template <class KV>
inline constexpr bool is_e4m3 = std::is_same_v<KV, __nv_fp8_e4m3>;

/// Two floats rounded to T, the first in the low half.
template <class T>
OCTAVO_DEVICE uint32_t pack(float low, float high) {
  if constexpr (std::is_same_v<T, __half>) {
    return bits_as<uint32_t>(__floats2half2_rn(low, high));
  } else {
    return bits_as<uint32_t>(__floats2bfloat162_rn(low, high));
  }
}

template <class T>
OCTAVO_DEVICE float2 unpack(uint32_t bits) {
  if constexpr (std::is_same_v<T, __half>) {
    return __half22float2(bits_as<__half2>(bits));
  } else {
    return __bfloat1622float2(bits_as<__nv_bfloat162>(bits));
  }
}

/// The upper bytes of both halves, e4m3, as a pair of T. Exact: exponent and mantissa
/// are put in their place, which is off by a power of two that a product puts right.
/// NaN is not kept.
template <class T>
OCTAVO_DEVICE uint32_t decode_upper_bytes(uint32_t bits) {
  const uint32_t signs = bits & 0x80008000U;
  if constexpr (std::is_same_v<T, __half>) {
    const uint32_t small = signs | (bits >> 1 & 0x3f803f80U);
    const auto factor = bits_as<__half2>(0x5c005c00U);  // 2^8
    return bits_as<uint32_t>(__hmul2(bits_as<__half2>(small), factor));
  } else {
    const uint32_t small = signs | (bits >> 4 & 0x07f007f0U);
    const auto factor = bits_as<__nv_bfloat162>(0x7b807b80U);  // 2^120
    return bits_as<uint32_t>(__hmul2(bits_as<__nv_bfloat162>(small), factor));
  }
}

/// Bytes 0 and 2, and bytes 1 and 3.
template <class T>
OCTAVO_DEVICE uint32_t decode_even(uint32_t bytes) {
  return decode_upper_bytes<T>(bytes << 8);
}
template <class T>
OCTAVO_DEVICE uint32_t decode_odd(uint32_t bytes) {
  return decode_upper_bytes<T>(bytes);
}

/// The elements of 16 bytes as floats.
template <class T, class KV>
OCTAVO_DEVICE void to_floats(const uint4& bits, float (&out)[16 / sizeof(KV)]) {
  const uint32_t words[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (is_e4m3<KV>) {
      const float2 even = unpack<__half>(decode_even<__half>(words[i]));
      const float2 odd = unpack<__half>(decode_odd<__half>(words[i]));
      out[4 * i] = even.x;
      out[4 * i + 1] = odd.x;
      out[4 * i + 2] = even.y;
      out[4 * i + 3] = odd.y;
    } else {
      const float2 both = unpack<T>(words[i]);
      out[2 * i] = both.x;
      out[2 * i + 1] = both.y;
    }
  }
}

}  // namespace octavo::gpu
