// Scalar dequantization. Block layouts are those of ggml's public headers; in
// every 32-block the low nibbles are elements 0..15 and the high ones 16..31.
#include "model/quantized/dequantize.hpp"

#include <array>
#include <cassert>
#include <string>

#include "core/error.hpp"
#include "model/quantized/scalar.hpp"

namespace octavo::model {
namespace {

/// Reads one block of a type and writes its elements.
using block_reader = void (*)(const std::byte* block, float* out);

std::uint32_t byte_at(const std::byte* at) {
  return std::to_integer<std::uint32_t>(*at);
}
float half_at(const std::byte* at) {
  return half_to_float(load<std::uint16_t>(at));
}

template <class Number>
void read_number(const std::byte* block, float* out) {
  *out = static_cast<float>(load<Number>(block));
}

void read_f16(const std::byte* block, float* out) {
  *out = half_at(block);
}
void read_bf16(const std::byte* block, float* out) {
  *out = bfloat_to_float(load<std::uint16_t>(block));
}
void read_e4m3(const std::byte* block, float* out) {
  *out = e4m3_to_float(load<std::uint8_t>(block));
}
void read_e5m2(const std::byte* block, float* out) {
  *out = e5m2_to_float(load<std::uint8_t>(block));
}

// d:f16 | q:i8[32]
void read_q8_0(const std::byte* block, float* out) {
  const float d = half_at(block);
  for (int j = 0; j < 32; ++j) out[j] = d * static_cast<float>(load<std::int8_t>(block + 2 + j));
}

// d:f16 | nibbles[16]
void read_q4_0(const std::byte* block, float* out) {
  const float d = half_at(block);
  for (int j = 0; j < 16; ++j) {
    const auto pair = static_cast<int>(byte_at(block + 2 + j));
    out[j] = d * static_cast<float>((pair & 15) - 8);
    out[j + 16] = d * static_cast<float>((pair >> 4) - 8);
  }
}

// d:f16 | m:f16 | nibbles[16]
void read_q4_1(const std::byte* block, float* out) {
  const float d = half_at(block);
  const float m = half_at(block + 2);
  for (int j = 0; j < 16; ++j) {
    const std::uint32_t pair = byte_at(block + 4 + j);
    out[j] = d * static_cast<float>(pair & 15U) + m;
    out[j + 16] = d * static_cast<float>(pair >> 4U) + m;
  }
}

/// The two 5-bit codes of elements j and j + 16: bit e of `high` is the fifth
/// bit of element e.
std::array<int, 2> five_bit_codes(std::uint32_t pair, std::uint32_t high, int j) {
  return {static_cast<int>((pair & 15U) | ((high >> j) & 1U) << 4U),
          static_cast<int>(pair >> 4U | ((high >> (j + 16)) & 1U) << 4U)};
}

// d:f16 | high:u32 | nibbles[16]
void read_q5_0(const std::byte* block, float* out) {
  const float d = half_at(block);
  const auto high = load<std::uint32_t>(block + 2);
  for (int j = 0; j < 16; ++j) {
    const auto codes = five_bit_codes(byte_at(block + 6 + j), high, j);
    out[j] = d * static_cast<float>(codes[0] - 16);
    out[j + 16] = d * static_cast<float>(codes[1] - 16);
  }
}

// d:f16 | m:f16 | high:u32 | nibbles[16]
void read_q5_1(const std::byte* block, float* out) {
  const float d = half_at(block);
  const float m = half_at(block + 2);
  const auto high = load<std::uint32_t>(block + 4);
  for (int j = 0; j < 16; ++j) {
    const auto codes = five_bit_codes(byte_at(block + 8 + j), high, j);
    out[j] = d * static_cast<float>(codes[0]) + m;
    out[j + 16] = d * static_cast<float>(codes[1]) + m;
  }
}

/// Scale and minimum of sub-block s (0..7) of a K block: eight pairs of 6-bit
/// numbers in 12 bytes. The first four pairs take the low bits of bytes 0..7;
/// the others take a nibble each of bytes 8..11 and the top bits left over.
struct scale_and_min {
  float scale;
  float min;
};

scale_and_min k_scales(const std::byte* packed, int s) {
  const auto at = [&](int i) { return byte_at(packed + i); };
  if (s < 4) return {static_cast<float>(at(s) & 63U), static_cast<float>(at(s + 4) & 63U)};
  const std::uint32_t scale = (at(s + 4) & 15U) | (at(s - 4) >> 6U) << 4U;
  const std::uint32_t min = at(s + 4) >> 4U | (at(s) >> 6U) << 4U;
  return {static_cast<float>(scale), static_cast<float>(min)};
}

// d:f16 | dmin:f16 | scales[12] | nibbles[128]; 32 nibble bytes hold two
// sub-blocks of 32, low nibbles first.
void read_q4_k(const std::byte* block, float* out) {
  const float d = half_at(block);
  const float dmin = half_at(block + 2);
  for (int s = 0; s < 8; ++s) {
    const auto [scale, min] = k_scales(block + 4, s);
    const std::byte* nibbles = block + 16 + s / 2 * 32;
    for (int l = 0; l < 32; ++l) {
      const std::uint32_t code = byte_at(nibbles + l) >> (s % 2 * 4) & 15U;
      out[32 * s + l] = d * scale * static_cast<float>(code) - dmin * min;
    }
  }
}

// d:f16 | dmin:f16 | scales[12] | high[32] | nibbles[128]; bit s of high[l] is
// the fifth bit of element l of sub-block s.
void read_q5_k(const std::byte* block, float* out) {
  const float d = half_at(block);
  const float dmin = half_at(block + 2);
  for (int s = 0; s < 8; ++s) {
    const auto [scale, min] = k_scales(block + 4, s);
    const std::byte* nibbles = block + 48 + s / 2 * 32;
    for (int l = 0; l < 32; ++l) {
      const std::uint32_t low = byte_at(nibbles + l) >> (s % 2 * 4) & 15U;
      const std::uint32_t high = byte_at(block + 16 + l) >> s & 1U;
      out[32 * s + l] = d * scale * static_cast<float>(low | high << 4U) - dmin * min;
    }
  }
}

// low[128] | high[64] | scales:i8[16] | d:f16. In each half of 128 elements,
// elements l, l + 32, l + 64 and l + 96 share high[l], two bits each.
void read_q6_k(const std::byte* block, float* out) {
  const float d = half_at(block + 208);
  for (int e = 0; e < 256; ++e) {
    const int half = e / 128;
    const int quarter = e % 128 / 32;
    const int l = e % 32;
    const std::byte* low = block + 64 * half + (quarter % 2) * 32 + l;
    const std::uint32_t low_bits = byte_at(low) >> (quarter / 2 * 4) & 15U;
    const std::uint32_t high_bits = byte_at(block + 128 + 32 * half + l) >> (2 * quarter) & 3U;
    const float scale = load<std::int8_t>(block + 192 + e / 16);
    out[e] = d * scale * static_cast<float>(static_cast<int>(low_bits | high_bits << 4U) - 32);
  }
}

block_reader reader_of(element_type type) {
  switch (type) {
    case element_type::f32:
      return read_number<float>;
    case element_type::f16:
      return read_f16;
    case element_type::bf16:
      return read_bf16;
    case element_type::f64:
      return read_number<double>;
    case element_type::i8:
      return read_number<std::int8_t>;
    case element_type::u8:
      return read_number<std::uint8_t>;
    case element_type::i16:
      return read_number<std::int16_t>;
    case element_type::u16:
      return read_number<std::uint16_t>;
    case element_type::i32:
      return read_number<std::int32_t>;
    case element_type::u32:
      return read_number<std::uint32_t>;
    case element_type::f8_e4m3:
      return read_e4m3;
    case element_type::f8_e5m2:
      return read_e5m2;
    case element_type::q4_0:
      return read_q4_0;
    case element_type::q4_1:
      return read_q4_1;
    case element_type::q5_0:
      return read_q5_0;
    case element_type::q5_1:
      return read_q5_1;
    case element_type::q8_0:
      return read_q8_0;
    case element_type::q4_k:
      return read_q4_k;
    case element_type::q5_k:
      return read_q5_k;
    case element_type::q6_k:
      return read_q6_k;
    default:
      return nullptr;
  }
}

}  // namespace

bool is_readable(element_type type) {
  return reader_of(type) != nullptr;
}

void dequantize(element_type type, std::span<const std::byte> bytes, std::span<float> out) {
  const block_reader read = reader_of(type);
  const element_type_info& layout = info(type);
  if (read == nullptr) {
    throw input_error("tensors of type " + std::string(layout.name) +
                      " cannot be computed with; use a file whose tensors are F32, F16, BF16, "
                      "Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K or Q6_K");
  }
  const auto count = static_cast<std::int64_t>(out.size());
  assert(count % layout.block_elements == 0);
  assert(bytes_of(type, count) == static_cast<std::int64_t>(bytes.size()));
  for (std::int64_t i = 0; i < count / layout.block_elements; ++i) {
    read(bytes.data() + i * layout.block_bytes, out.data() + i * layout.block_elements);
  }
}

}  // namespace octavo::model
