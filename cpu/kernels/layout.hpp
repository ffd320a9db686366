// How packed weights lie in memory, and the views that kernels get. Plain data
// only: this header is compiled with the flags of every instruction set.
//
// Output rows come in tiles of 8, inputs in blocks of 32. Block by block, a tile
// holds codes of 8 rows side by side, four inputs each in one 32-byte vector, so
// that a kernel multiplies by four broadcast inputs and never adds sideways:
//
//   vector j of the 4-bit plane: byte 4 r + e = input 4 j + e of row r in the low
//   nibble, input 16 + 4 j + e in the high one (j = 0 .. 3, r = 0 .. 7, e = 0 .. 3).
//
// Codes of 5 and 6 bits add planes of one and two high bits; codes of 8 bits
// are eight vectors of inputs 4 j .. 4 j + 3. Scales lie apart, in the same order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace octavo::cpu {

inline constexpr std::size_t tile_rows = 8;
inline constexpr std::size_t block_inputs = 32;
/// Activation rows that lie side by side.
inline constexpr std::size_t panel_rows = 8;
/// Tokens of a KV page, and positions whose scores are held at once.
inline constexpr std::size_t page_tokens = 16;
inline constexpr std::size_t segment_tokens = 256;
inline constexpr std::size_t head_dim_max = 512;
/// Blocks that share a super-scale in the K formats.
inline constexpr std::size_t super_blocks = 8;

/// Value of code c, with the scale fields of its row and block.
enum class layout : std::uint8_t {
  u4_scale,      ///< (c - 8) d                 d: half
  u4_scale_min,  ///< c d + m                   d, m: half
  u4_k,          ///< c d s - e n               d, e: half per 256; s, n: u8
  u5_scale,      ///< (c - 16) d
  u5_scale_min,  ///< c d + m
  u5_k,          ///< c d s - e n
  u6_k,          ///< (c - 32) d s              d: half per 256; s: i8 per 16
  u8_scale,      ///< (c - 128) d
  u4_group,      ///< (c - z) s                 s: float, z: u8, per group of blocks
  u8_group,
  f32,  ///< a row's inputs are not padded to whole blocks
  f16,
  bf16,
  f8_e4m3,  ///< times a float per row and run of inputs
};

[[nodiscard]] constexpr bool is_grouped(layout kind) {
  return kind == layout::u4_group || kind == layout::u8_group;
}

[[nodiscard]] constexpr bool is_float(layout kind) {
  return kind >= layout::f32;
}

[[nodiscard]] constexpr std::size_t float_bytes(layout kind) {
  return kind == layout::f32 ? 4 : kind == layout::f8_e4m3 ? 1 : 2;
}

/// Bytes for 8 rows of an integer layout.
struct layout_bytes {
  std::size_t codes_per_block;
  std::size_t scales_per_block;  ///< per group where blocks have groups
  std::size_t supers;            ///< per 8 blocks
};

[[nodiscard]] constexpr layout_bytes bytes_of(layout kind) {
  switch (kind) {
    case layout::u4_scale:
      return {128, 16, 0};
    case layout::u4_scale_min:
      return {128, 32, 0};
    case layout::u4_k:
      return {128, 16, 32};
    case layout::u5_scale:
      return {160, 16, 0};
    case layout::u5_scale_min:
      return {160, 32, 0};
    case layout::u5_k:
      return {160, 16, 32};
    case layout::u6_k:
      return {192, 16, 16};
    case layout::u8_scale:
      return {256, 16, 0};
    case layout::u4_group:
      return {128, 40, 0};
    case layout::u8_group:
      return {256, 40, 0};
    case layout::f32:
    case layout::f16:
    case layout::bf16:
    case layout::f8_e4m3:
      break;
  }
  return {};
}

/// Packed weights. Padding rows and inputs hold zeros.
struct weights_view {
  layout kind{};
  std::size_t rows = 0;
  std::size_t inputs = 0;
  /// Blocks of 32 inputs in a row.
  std::size_t blocks = 0;
  const std::byte* codes = nullptr;   ///< [tile][block]; floats: [tile][input][row]
  const std::byte* scales = nullptr;  ///< [tile][block] or [tile][group]
  const std::byte* supers = nullptr;  ///< [tile][block / 8]
  /// Grouped layouts: how many, and the group of each block. f8_e4m3: how many runs
  /// of inputs, and how long each is.
  std::size_t groups = 0;
  std::size_t run_inputs = 0;
  const std::uint32_t* block_groups = nullptr;
};

/// Activation rows as int8, in panels of up to 8 rows that lie side by side
/// block by block. All panels but the last have 8 rows. Where activations have two
/// terms, each is a row, and rows 2 m and 2 m + 1 add up to output row m.
struct rows_view {
  std::size_t rows = 0;
  std::size_t terms = 1;
  std::size_t blocks = 0;
  const std::int8_t* codes = nullptr;   ///< [panel][block][row][32]
  const float* scales = nullptr;        ///< [panel][block][row]
  const float* sums = nullptr;          ///< same: scale x sum of the codes
  const std::int16_t* pairs = nullptr;  ///< [panel][block][row][half][2], see activations.hpp
};

/// Where one block of one activation row goes.
struct block_slot {
  std::int8_t* codes;
  float* scale;
  float* sum;
  std::int16_t* pairs;
};

}  // namespace octavo::cpu
