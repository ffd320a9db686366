// Rows of GGUF blocks to packed rows and back. Internal to packed_weights.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "cpu/kernels/layout.hpp"

namespace octavo::cpu {

/// Row `row` (0 .. 7) of a tile.
struct packed_row {
  std::byte* codes;
  std::byte* scales;
  std::byte* supers;
  std::size_t row;
};

/// The 32 codes of row `row` of one block of a tile.
using codes32 = std::array<std::uint8_t, block_inputs>;
void write_codes(layout kind, const codes32& codes, std::byte* block, std::size_t row);

/// Packs a row of `blocks` blocks of 32 from its stored form; zeros where `from`
/// is nullptr. Every byte that belongs to the row is written.
void pack_row(layout kind, const std::byte* from, std::size_t blocks, const packed_row& to);

/// The weights of row `row` of a tile, in the arithmetic of model::dequantize.
void unpack_row(const weights_view& w, std::size_t tile, std::size_t row, float* out);

}  // namespace octavo::cpu
