// Takes stored blocks apart into codes and scales, and writes the planes that
// layout.hpp describes. Stored layouts are those of ggml's public headers.
#include "cpu/kernels/pack_block.hpp"

#include <array>
#include <cstring>

#include "model/quantized/scalar.hpp"

namespace octavo::cpu {
namespace {

using model::half_to_float;
using model::load;

unsigned byte_at(const std::byte* p, std::size_t i) {
  return std::to_integer<unsigned>(p[i]);
}

unsigned code_bits(layout kind) {
  switch (kind) {
    case layout::u8_scale:
    case layout::u8_group:
      return 8;
    case layout::u6_k:
      return 6;
    case layout::u5_scale:
    case layout::u5_scale_min:
    case layout::u5_k:
      return 5;
    default:
      return 4;
  }
}

/// Bytes of the stored block, or super-block of the K formats.
std::size_t stored_bytes(layout kind) {
  switch (kind) {
    case layout::u4_scale:
      return 18;
    case layout::u4_scale_min:
      return 20;
    case layout::u5_scale:
      return 22;
    case layout::u5_scale_min:
      return 24;
    case layout::u8_scale:
      return 34;
    case layout::u4_k:
      return 144;
    case layout::u5_k:
      return 176;
    default:
      return 210;
  }
}

codes32 read_codes(layout kind, const std::byte* block, std::size_t row) {
  const unsigned bits = code_bits(kind);
  codes32 codes{};
  for (std::size_t k = 0; k < 32; ++k) {
    const std::size_t j = k % 16 / 4;
    const std::size_t lane = row * 4 + k % 4;
    if (bits == 8) {
      codes[k] = static_cast<std::uint8_t>(byte_at(block, k / 4 * 32 + lane));
      continue;
    }
    const bool upper = k >= 16;
    unsigned code = byte_at(block, j * 32 + lane) >> (upper ? 4U : 0U) & 15U;
    if (bits == 5) code |= (byte_at(block, 128 + lane) >> (2 * j + (upper ? 1 : 0)) & 1U) << 4U;
    if (bits == 6) {
      const unsigned plane = byte_at(block, 128 + 32 * (j / 2) + lane);
      code |= (plane >> (4 * (j % 2) + (upper ? 2 : 0)) & 3U) << 4U;
    }
    codes[k] = static_cast<std::uint8_t>(code);
  }
  return codes;
}

/// Codes of a block of 32 that is stored on its own.
codes32 plain_codes(layout kind, const std::byte* stored) {
  codes32 codes{};
  if (kind == layout::u8_scale) {
    for (std::size_t k = 0; k < 32; ++k) {
      codes[k] = static_cast<std::uint8_t>(byte_at(stored, 2 + k) ^ 128U);
    }
    return codes;
  }
  const bool has_min = kind == layout::u4_scale_min || kind == layout::u5_scale_min;
  const bool five = code_bits(kind) == 5;
  const std::byte* rest = stored + (has_min ? 4 : 2);
  const auto high = five ? load<std::uint32_t>(rest) : 0U;
  if (five) rest += 4;
  for (std::size_t k = 0; k < 32; ++k) {
    const unsigned nibble = byte_at(rest, k % 16) >> (k < 16 ? 0U : 4U) & 15U;
    codes[k] = static_cast<std::uint8_t>(nibble | (high >> k & 1U) << 4U);
  }
  return codes;
}

/// Codes of sub-block s of a stored Q4_K or Q5_K super-block.
codes32 k_codes(layout kind, const std::byte* stored, std::size_t s) {
  codes32 codes{};
  const bool five = kind == layout::u5_k;
  const std::byte* nibbles = stored + (five ? 48 : 16) + s / 2 * 32;
  for (std::size_t l = 0; l < 32; ++l) {
    const unsigned low = byte_at(nibbles, l) >> (s % 2 * 4) & 15U;
    const unsigned high = five ? byte_at(stored, 16 + l) >> s & 1U : 0U;
    codes[l] = static_cast<std::uint8_t>(low | high << 4U);
  }
  return codes;
}

/// Codes of sub-block s (32 inputs) of a stored Q6_K super-block.
codes32 q6_codes(const std::byte* stored, std::size_t s) {
  codes32 codes{};
  const std::size_t half = s / 4;
  const std::size_t quarter = s % 4;
  for (std::size_t l = 0; l < 32; ++l) {
    const unsigned low =
        byte_at(stored, 64 * half + quarter % 2 * 32 + l) >> (quarter / 2 * 4) & 15U;
    const unsigned high = byte_at(stored, 128 + 32 * half + l) >> (2 * quarter) & 3U;
    codes[l] = static_cast<std::uint8_t>(low | high << 4U);
  }
  return codes;
}

/// 6-bit scale and minimum s of the 12 packed bytes.
std::array<unsigned, 2> k_scale_and_min(const std::byte* packed, std::size_t s) {
  if (s < 4) return {byte_at(packed, s) & 63U, byte_at(packed, s + 4) & 63U};
  return {(byte_at(packed, s + 4) & 15U) | (byte_at(packed, s - 4) >> 6U) << 4U,
          byte_at(packed, s + 4) >> 4U | (byte_at(packed, s) >> 6U) << 4U};
}

void pack_plain_block(layout kind, const std::byte* stored, std::byte* codes, std::byte* scales,
                      std::size_t row) {
  write_codes(kind, plain_codes(kind, stored), codes, row);
  std::memcpy(scales + 2 * row, stored, 2);
  if (bytes_of(kind).scales_per_block == 32) std::memcpy(scales + 16 + 2 * row, stored + 2, 2);
}

void pack_k_block(layout kind, const std::byte* stored, std::size_t s, std::byte* codes,
                  std::byte* scales, std::size_t row) {
  if (kind == layout::u6_k) {
    write_codes(kind, q6_codes(stored, s), codes, row);
    scales[row] = stored[192 + 2 * s];
    scales[8 + row] = stored[192 + 2 * s + 1];
    return;
  }
  write_codes(kind, k_codes(kind, stored, s), codes, row);
  const auto [scale, min] = k_scale_and_min(stored + 4, s);
  scales[row] = static_cast<std::byte>(scale);
  scales[8 + row] = static_cast<std::byte>(min);
}

void pack_super(layout kind, const std::byte* stored, std::byte* super, std::size_t row) {
  if (kind == layout::u6_k) {
    std::memcpy(super + 2 * row, stored + 208, 2);
    return;
  }
  std::memcpy(super + 2 * row, stored, 2);
  std::memcpy(super + 16 + 2 * row, stored + 2, 2);
}

float half_at(const std::byte* p) {
  return half_to_float(load<std::uint16_t>(p));
}

/// (code - zero) * scale, with the fields of the block's group.
void unpack_grouped(const codes32& codes, const std::byte* fields, std::size_t row, float* out) {
  const auto scale = load<float>(fields + 4 * row);
  const auto zero = static_cast<int>(byte_at(fields, 32 + row));
  for (std::size_t i = 0; i < block_inputs; ++i) {
    out[i] = static_cast<float>(codes[i] - zero) * scale;
  }
}

/// The weights of one row of a block.
void unpack_block(layout kind, const codes32& codes, const std::byte* scales,
                  const std::byte* super, std::size_t row, float* out) {
  const bool k = kind == layout::u4_k || kind == layout::u5_k;
  const float d = half_at((k || kind == layout::u6_k ? super : scales) + 2 * row);
  const int zero = kind == layout::u4_scale   ? 8
                   : kind == layout::u5_scale ? 16
                   : kind == layout::u6_k     ? 32
                   : kind == layout::u8_scale ? 128
                                              : 0;
  for (std::size_t i = 0; i < block_inputs; ++i) {
    const auto code = static_cast<float>(codes[i] - zero);
    if (kind == layout::u6_k) {
      out[i] = d * static_cast<float>(load<std::int8_t>(scales + i / 16 * 8 + row)) * code;
    } else if (k) {
      const float dmin = half_at(super + 16 + 2 * row);
      out[i] = d * static_cast<float>(byte_at(scales, row)) * code -
               dmin * static_cast<float>(byte_at(scales, 8 + row));
    } else if (bytes_of(kind).scales_per_block == 32) {
      out[i] = d * code + half_at(scales + 16 + 2 * row);
    } else {
      out[i] = d * code;
    }
  }
}

}  // namespace

/// Where a row's bits of a block lie: the vector and shift of input k.
void write_codes(layout kind, const codes32& codes, std::byte* block, std::size_t row) {
  const unsigned bits = code_bits(kind);
  const auto put = [&](std::size_t at, unsigned value) {
    block[at] = static_cast<std::byte>(value);
  };
  if (bits == 8) {
    for (std::size_t k = 0; k < 32; ++k) put(k / 4 * 32 + row * 4 + k % 4, codes[k]);
    return;
  }
  for (std::size_t k = 0; k < 16; ++k) {
    const std::size_t at = k / 4 * 32 + row * 4 + k % 4;
    put(at, (codes[k] & 15U) | (codes[k + 16] & 15U) << 4U);
  }
  for (std::size_t e = 0; e < 4; ++e) {
    const std::size_t lane = 128 + row * 4 + e;
    std::array<unsigned, 2> planes{};
    for (std::size_t j = 0; j < 4; ++j) {
      const unsigned low = codes[4 * j + e] >> 4U;
      const unsigned high = codes[16 + 4 * j + e] >> 4U;
      if (bits == 5) planes[0] |= (low | high << 1U) << (2 * j);
      if (bits == 6) planes[j / 2] |= (low | high << 2U) << (4 * (j % 2));
    }
    if (bits >= 5) put(lane, planes[0]);
    if (bits == 6) put(lane + 32, planes[1]);
  }
}

void pack_row(layout kind, const std::byte* from, std::size_t blocks, const packed_row& to) {
  const layout_bytes sizes = bytes_of(kind);
  // All fields zero, so that every padding weight is zero, whatever the format.
  static constexpr std::array<std::byte, 210> nothing{};
  const std::size_t stored_size = stored_bytes(kind);
  for (std::size_t b = 0; b < blocks; ++b) {
    std::byte* codes = to.codes + b * sizes.codes_per_block;
    std::byte* scales = to.scales + b * sizes.scales_per_block;
    if (sizes.supers == 0) {
      const std::byte* stored = from == nullptr ? nothing.data() : from + b * stored_size;
      pack_plain_block(kind, stored, codes, scales, to.row);
      continue;
    }
    const std::size_t super = b / super_blocks;
    const std::byte* stored = from == nullptr ? nothing.data() : from + super * stored_size;
    pack_k_block(kind, stored, b % super_blocks, codes, scales, to.row);
    if (b % super_blocks == 0) pack_super(kind, stored, to.supers + super * sizes.supers, to.row);
  }
}

void unpack_row(const weights_view& w, std::size_t tile, std::size_t row, float* out) {
  const layout_bytes sizes = bytes_of(w.kind);
  for (std::size_t b = 0; b < w.blocks; ++b) {
    const std::size_t block = tile * w.blocks + b;
    if (is_grouped(w.kind)) {
      const std::size_t group = tile * w.groups + w.block_groups[b];
      unpack_grouped(read_codes(w.kind, w.codes + block * sizes.codes_per_block, row),
                     w.scales + group * sizes.scales_per_block, row, out + b * block_inputs);
      continue;
    }
    const std::size_t super = tile * (w.blocks / super_blocks) + b / super_blocks;
    unpack_block(w.kind, read_codes(w.kind, w.codes + block * sizes.codes_per_block, row),
                 w.scales + block * sizes.scales_per_block, w.supers + super * sizes.supers, row,
                 out + b * block_inputs);
  }
}

}  // namespace octavo::cpu
