// 8-bit codes to pairs of 16-bit floats, integers and e4m3 floats: see
// w4a16/lane_layout.hpp.
#pragma once

#include <type_traits>

#include "gpu/kernels/dense_gemm/fragments.cuh"
#include "gpu/kernels/w4a16/lane_layout.hpp"

namespace octavo::gpu {

/// What both kinds of 8-bit codes share: a lane's 16 bytes are two tiles of 16 columns.
template <class T>
struct byte_codec {
  using element = T;
  static constexpr int block_columns = lane_block_columns(8);
  static constexpr int tiles = block_columns / 16;
  using scale_vector = uint2;
  using zero_vector = std::uint32_t;
  static constexpr bool half = std::is_same_v<T, __half>;

  /// A lane's scales as pairs of equal numbers, and zero points, by n8.
  struct factors {
    std::uint32_t scale[4];
    std::uint32_t zero[4];
  };

  __device__ static std::uint32_t word_of(const uint4& codes, int i) {
    return i == 0 ? codes.x : i == 1 ? codes.y : i == 2 ? codes.z : codes.w;
  }
  __device__ static void unpack_scales(const uint2& scales, factors& f) {
    f.scale[0] = repeat_low(scales.x);
    f.scale[1] = repeat_high(scales.x);
    f.scale[2] = repeat_low(scales.y);
    f.scale[3] = repeat_high(scales.y);
  }
  __device__ static std::uint32_t times(std::uint32_t pair, std::uint32_t scale) {
    return bits_as<std::uint32_t>(__hmul2(bits_as<pair_of<T>>(pair), bits_as<pair_of<T>>(scale)));
  }
  __device__ static uint2 equal_scales(float value) {
    const auto pair = bits_as<std::uint32_t>(packed_pair<T>::repeat(static_cast<T>(value)));
    return make_uint2(pair, pair);
  }
};

/// (code - zero) * scale. In fp16 a code in the mantissa of 1024 is exact; bf16 has
/// too few bits for that, so the difference is taken in floats (in the mantissa of
/// 2^23): it has at most 8 bits, which bf16 holds.
template <class T>
struct int8_codec : byte_codec<T> {
  using base = byte_codec<T>;
  using factors = typename base::factors;

  __device__ static factors unpack_factors(const uint2& scales, std::uint32_t zeros) {
    factors f;
    base::unpack_scales(scales, f);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t zero = zeros >> (8 * i) & 0xffU;
      f.zero[i] = base::half ? 0x64006400U | zero * 0x10001U : 0x4b000000U | zero;
    }
    return f;
  }
  __device__ static std::uint32_t middle() {
    return 0x80808080U;
  }
  __device__ static uint2 unit_scales() {
    return base::equal_scales(1.0F);
  }

  /// Bytes 0 and 2 of `bytes`, less the zero point.
  __device__ static std::uint32_t difference(std::uint32_t bytes, std::uint32_t zero) {
    if constexpr (base::half) {
      const std::uint32_t raw = lop3<0xEA>(bytes, 0x00ff00ffU, 0x64006400U);
      return bits_as<std::uint32_t>(__hsub2(bits_as<__half2>(raw), bits_as<__half2>(zero)));
    } else {
      const float z = bits_as<float>(zero);
      const float low = bits_as<float>(lop3<0xEA>(bytes, 0xffU, 0x4b000000U)) - z;
      const float high = bits_as<float>(lop3<0xEA>(bytes >> 16, 0xffU, 0x4b000000U)) - z;
      return bits_as<std::uint32_t>(__floats2bfloat162_rn(low, high));
    }
  }
  __device__ static void unpack(const uint4& codes, int tile, const factors& f,
                                std::uint32_t (&pairs)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int column = 2 * tile + i / 2;
      const std::uint32_t word = base::word_of(codes, column);
      pairs[i] =
          base::times(difference(i % 2 == 0 ? word : word >> 8, f.zero[column]), f.scale[column]);
    }
  }
};

/// value * scale. The bits of an e4m3 number, moved so that its exponent ends where
/// that of the 16-bit type does, are the number times 2^-8 in fp16 and 2^-120 in bf16
/// (subnormal numbers too). Scales make up for it: repack multiplies them.
template <class T>
struct e4m3_codec : byte_codec<T> {
  using base = byte_codec<T>;
  using factors = typename base::factors;

  __device__ static factors unpack_factors(const uint2& scales, std::uint32_t) {
    factors f;
    base::unpack_scales(scales, f);
    return f;
  }
  __device__ static std::uint32_t middle() { return 0; }
  __device__ static uint2 unit_scales() {
    return base::equal_scales(base::half ? 0x1p8F : 0x1p120F);
  }

  __device__ static void unpack(const uint4& codes, int tile, const factors& f,
                                std::uint32_t (&pairs)[4]) {
    constexpr int move = base::half ? 1 : 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int column = 2 * tile + i / 2;
      const std::uint32_t word = base::word_of(codes, column);
      // The two numbers of the pair in bytes 1 and 3.
      const std::uint32_t bytes = i % 2 == 0 ? word << 8 : word;
      const std::uint32_t moved = (bytes & 0x80008000U) | (bytes & 0x7f007f00U) >> move;
      pairs[i] = base::times(moved, f.scale[column]);
    }
  }
};

}  // namespace octavo::gpu
