// 4-bit codes to pairs of 16-bit floats: see lane_layout.hpp.
//
// A code put into the low mantissa bits of 1024 (fp16) or 128 (bf16) is that number
// plus the code, exactly. Taking away 1024 + zero (or 128 + zero) leaves code - zero
// exactly, and one multiplication by the scale rounds once.
#pragma once

#include <type_traits>

#include "gpu/kernels/dense_gemm/fragments.cuh"
#include "gpu/kernels/w4a16/lane_layout.hpp"

namespace octavo::gpu {

template <class T>
struct int4_codec {
  using element = T;
  static constexpr int block_columns = lane_block_columns(4);
  /// Tiles of 16 columns in a lane's 16 bytes.
  static constexpr int tiles = block_columns / 16;
  /// A lane's scales and zero points, as they lie in memory.
  using scale_vector = uint4;
  using zero_vector = uint2;
  /// 1024 in fp16 or 128 in bf16, twice.
  static constexpr std::uint32_t offset = std::is_same_v<T, __half> ? 0x64006400U : 0x43004300U;

  /// A lane's scales and offset zero points as pairs of equal numbers, by n8.
  struct factors {
    std::uint32_t scale[8];
    std::uint32_t zero[8];
  };

  /// `zeros` holds a byte for each n8.
  __device__ static factors unpack_factors(const uint4& scales, const uint2& zeros) {
    const std::uint32_t scale_words[4] = {scales.x, scales.y, scales.z, scales.w};
    const std::uint32_t zero_words[2] = {zeros.x, zeros.y};
    factors f;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const std::uint32_t word = scale_words[i / 2];
      f.scale[i] = i % 2 == 0 ? repeat_low(word) : repeat_high(word);
      const std::uint32_t zero = zero_words[i / 4] >> (i % 4 * 8) & 0xffU;
      f.zero[i] = offset | zero * 0x10001U;
    }
    return f;
  }

  /// Zero points of symmetric weights.
  __device__ static uint2 middle() {
    return make_uint2(0x08080808U, 0x08080808U);
  }
  /// Scales where there are none.
  __device__ static uint4 unit_scales() {
    const std::uint32_t one = bits_as<std::uint32_t>(packed_pair<T>::repeat(static_cast<T>(1.0F)));
    return make_uint4(one, one, one, one);
  }

  __device__ static std::uint32_t word_of(const uint4& codes, int i) {
    return i == 0 ? codes.x : i == 1 ? codes.y : i == 2 ? codes.z : codes.w;
  }

  /// Tile `tile`'s weights: pairs (2t, 2t + 1), (2t + 8, 2t + 9) of its lower eight
  /// columns, and the same of its upper eight.
  __device__ static void unpack(const uint4& codes, int tile, const factors& f,
                                std::uint32_t (&pairs)[4]) {
    const std::uint32_t word = word_of(codes, tile);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      // (word >> 4 i) & mask | offset
      const std::uint32_t raw = lop3<0xEA>(word >> (4 * i), 0x000f000fU, offset);
      const int column = 2 * tile + i / 2;
      const pair_of<T> code =
          __hsub2(bits_as<pair_of<T>>(raw), bits_as<pair_of<T>>(f.zero[column]));
      pairs[i] = bits_as<std::uint32_t>(__hmul2(code, bits_as<pair_of<T>>(f.scale[column])));
    }
  }
};

}  // namespace octavo::gpu
