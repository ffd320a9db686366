// Rows of quantized weights as floats, straight from the formats' formulas.
#include "model/quantized/weight_matrix.hpp"

#include <array>
#include <cassert>

#include "model/quantized/dequantize.hpp"
#include "model/quantized/scalar.hpp"

namespace octavo::model {
namespace {

std::uint32_t word_at(std::span<const std::byte> words, std::int64_t i) {
  return load<std::uint32_t>(words.data() + 4 * i);
}

/// Where column j of eight sits in a word, in units of 4 bits.
constexpr std::array<int, 8> awq_places{0, 4, 1, 5, 2, 6, 3, 7};

/// Code `i` of `bits` bits (4 or 8) in a dense little-endian run.
int code_at(std::span<const std::byte> codes, int bits, std::int64_t i) {
  const auto byte = std::to_integer<int>(codes[static_cast<std::size_t>(i * bits / 8)]);
  return bits == 8 ? byte : (byte >> (i % 2 * 4)) & 15;
}

std::int64_t group_of(std::span<const std::byte> groups, std::int64_t group, std::int64_t k) {
  return groups.empty() ? k / group : load<std::int32_t>(groups.data() + 4 * k);
}

void read_row(const block_matrix& m, std::int64_t row, std::span<float> out) {
  const std::int64_t row_bytes = bytes_of(m.type, m.columns);
  dequantize(m.type, m.bytes.subspan(row * row_bytes, row_bytes), out);
}

void read_row(const awq_matrix& m, std::int64_t row, std::span<float> out) {
  const std::int64_t words = m.rows / 8;
  const int shift = 4 * awq_places[row % 8];
  const auto nibble = [&](std::span<const std::byte> from, std::int64_t line) {
    return static_cast<int>(word_at(from, line * words + row / 8) >> shift & 15U);
  };
  for (std::int64_t k = 0; k < m.columns; ++k) {
    const std::int64_t g = k / m.group;
    const int zero = m.zeros.empty() ? 8 : nibble(m.zeros, g);
    out[k] = static_cast<float>(nibble(m.codes, k) - zero) * m.scales.at(g * m.rows + row);
  }
}

void read_row(const gptq_matrix& m, std::int64_t row, std::span<float> out) {
  const std::int64_t per_word = 32 / m.bits;
  const int mask = (1 << m.bits) - 1;
  const std::int64_t zero_row_bytes = m.rows * m.bits / 8;
  for (std::int64_t k = 0; k < m.columns; ++k) {
    const std::int64_t g = group_of(m.groups, m.group, k);
    const std::uint32_t word = word_at(m.codes, k / per_word * m.rows + row);
    const int code = static_cast<int>(word >> (k % per_word * m.bits)) & mask;
    const int stored = code_at(m.zeros.subspan(g * zero_row_bytes), m.bits, row);
    const int zero = (stored + m.zero_offset) & mask;
    out[k] = static_cast<float>(code - zero) * m.scales.at(g * m.rows + row);
  }
}

void read_row(const packed_matrix& m, std::int64_t row, std::span<float> out) {
  const std::int64_t groups = (m.columns + m.group - 1) / m.group;
  const std::int64_t row_bytes = (m.columns * m.bits + 31) / 32 * 4;
  const std::int64_t per_word = 32 / m.bits;
  const auto codes = m.codes.subspan(row * row_bytes, row_bytes);
  for (std::int64_t k = 0; k < m.columns; ++k) {
    const std::int64_t g = group_of(m.groups, m.group, k);
    int zero = 1 << (m.bits - 1);
    if (!m.zeros.empty()) {
      // Zeros are packed down the rows: one word holds the same group of several.
      const auto word = m.zeros.subspan(4 * (row / per_word * groups + g), 4);
      zero = code_at(word, m.bits, row % per_word);
    }
    const int code = code_at(codes, m.bits, k);
    out[k] = static_cast<float>(code - zero) * m.scales.at(row * groups + g);
  }
}

void read_row(const scaled_matrix& m, std::int64_t row, std::span<float> out) {
  dequantize(m.type, m.codes.subspan(row * m.columns, m.columns), out);
  const std::int64_t blocks = (m.columns + m.block_columns - 1) / m.block_columns;
  const std::int64_t first = row / m.block_rows * blocks;
  for (std::int64_t k = 0; k < m.columns; ++k) out[k] *= m.scales.at(first + k / m.block_columns);
}

}  // namespace

float scale_array::at(std::int64_t i) const {
  const std::byte* data = bytes.data();
  switch (type) {
    case element_type::f16:
      return half_to_float(load<std::uint16_t>(data + 2 * i));
    case element_type::bf16:
      return bfloat_to_float(load<std::uint16_t>(data + 2 * i));
    default:
      return load<float>(data + 4 * i);
  }
}

std::int64_t rows_of(const weight_matrix& matrix) {
  return std::visit([](const auto& m) { return m.rows; }, matrix);
}

std::int64_t columns_of(const weight_matrix& matrix) {
  return std::visit([](const auto& m) { return m.columns; }, matrix);
}

void dequantize_row(const weight_matrix& matrix, std::int64_t row, std::span<float> out) {
  assert(row >= 0 && row < rows_of(matrix));
  assert(static_cast<std::int64_t>(out.size()) == columns_of(matrix));
  std::visit([&](const auto& m) { read_row(m, row, out); }, matrix);
}

}  // namespace octavo::model
