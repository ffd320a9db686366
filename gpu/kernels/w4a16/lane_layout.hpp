// The one internal layout of quantized weights: in the order in which the lanes of
// a warp need them for mma.m16n8k16, so that a lane's share of a tile is one
// 16-byte piece and no shuffle is ever needed. (The idea is Marlin's.)
//
// Weights are cut into blocks of 16 inputs x block_columns outputs: 64 outputs of
// 4-bit codes or 32 of 8-bit codes, 512 bytes. Blocks lie [input / 16][output /
// block_columns]. Within a block, lane l has 16 bytes. It holds the outputs n with
// n % 8 == l / 4 and, with t = l % 4, the inputs 2 t, 2 t + 1, 2 t + 8, 2 t + 9:
//   4 bits: word j has outputs 16 j + l / 4 and 16 j + 8 + l / 4. Nibbles 0 and 4
//           are inputs 2 t and 2 t + 1 of the first, 1 and 5 its inputs 2 t + 8 and
//           2 t + 9; 2, 6, 3, 7 the same of the second.
//   8 bits: word i has output 8 i + l / 4. Bytes 0 and 2 are inputs 2 t and 2 t + 1,
//           bytes 1 and 3 inputs 2 t + 8 and 2 t + 9.
// Scales (16-bit) and zero points (8-bit) lie [group][output], the outputs of a
// block permuted so that a lane's are neighbours: 8 groups of outputs n % 8.
#pragma once

#include <cstddef>
#include <cstdint>

namespace octavo::gpu {

inline constexpr int lane_block_inputs = 16;
inline constexpr int lane_block_bytes = 512;

constexpr int lane_block_columns(int bits) {
  return bits == 4 ? 64 : 32;
}

/// Where the scale of output `n` lies in the row of its group.
constexpr std::int64_t lane_scale_place(std::int64_t n, int bits) {
  const int block = lane_block_columns(bits);
  const auto inside = static_cast<int>(n % block);
  return n / block * block + inside % 8 * (block / 8) + inside / 8;
}

/// Where the code of input k and output n lies: the byte, and the first bit in it.
struct lane_place {
  std::int64_t byte = 0;
  int shift = 0;
};

constexpr lane_place lane_code_place(std::int64_t k, std::int64_t n, std::int64_t column_blocks,
                                     int bits) {
  const int block = lane_block_columns(bits);
  const auto column = static_cast<int>(n % block);
  const auto input = static_cast<int>(k % lane_block_inputs);
  const int lane = column % 8 * 4 + input % 8 / 2;
  const std::int64_t start = ((k / lane_block_inputs * column_blocks + n / block) * 32 + lane) * 16;
  const int upper_inputs = input / 8;
  const int odd = input % 2;
  if (bits == 8) return {start + column / 8 * 4 + odd * 2 + upper_inputs, 0};
  const int nibble = column % 16 / 8 * 2 + upper_inputs + odd * 4;
  return {start + column / 16 * 4 + nibble / 2, nibble % 2 * 4};
}

}  // namespace octavo::gpu
