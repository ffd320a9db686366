// Codes, zero points and scales of each stored form of quantized weights, by output
// and input. Internal to repack.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "model/quantized/scalar.hpp"
#include "model/quantized/weight_matrix.hpp"

namespace octavo::gpu {

inline std::uint32_t word_at(std::span<const std::byte> words, std::int64_t i) {
  return model::load<std::uint32_t>(words.data() + 4 * i);
}

/// The group of an input: from the file's table, or by counting.
inline std::int64_t group_of_input(std::span<const std::byte> groups, std::int64_t group,
                                   std::int64_t k) {
  return groups.empty() ? k / group : model::load<std::int32_t>(groups.data() + 4 * k);
}

struct awq_codes {
  static constexpr int bits = 4;
  static constexpr std::array<int, 8> shifts{0, 16, 4, 20, 8, 24, 12, 28};
  const model::awq_matrix& m;

  [[nodiscard]] unsigned nibble(std::span<const std::byte> from, std::int64_t line,
                                std::int64_t n) const {
    return word_at(from, line * (m.rows / 8) + n / 8) >> shifts[n % 8] & 15U;
  }
  [[nodiscard]] std::int64_t groups() const { return m.columns / m.group; }
  [[nodiscard]] std::int64_t group_of(std::int64_t k) const { return k / m.group; }
  [[nodiscard]] unsigned code(std::int64_t n, std::int64_t k) const {
    return nibble(m.codes, k, n);
  }
  [[nodiscard]] unsigned zero(std::int64_t n, std::int64_t g) const {
    return m.zeros.empty() ? 8U : nibble(m.zeros, g, n);
  }
  [[nodiscard]] float scale(std::int64_t n, std::int64_t g) const {
    return m.scales.at(g * m.rows + n);
  }
};

template <int width>
struct gptq_codes {
  static constexpr int bits = width;
  static constexpr std::int64_t per_word = 32 / bits;
  static constexpr unsigned mask = (1U << bits) - 1;
  const model::gptq_matrix& m;

  [[nodiscard]] std::int64_t groups() const { return m.columns / m.group; }
  [[nodiscard]] std::int64_t group_of(std::int64_t k) const {
    return group_of_input(m.groups, m.group, k);
  }
  [[nodiscard]] unsigned code(std::int64_t n, std::int64_t k) const {
    return word_at(m.codes, k / per_word * m.rows + n) >> (k % per_word * bits) & mask;
  }
  [[nodiscard]] unsigned zero(std::int64_t n, std::int64_t g) const {
    const std::uint32_t word = word_at(m.zeros, g * (m.rows / per_word) + n / per_word);
    const unsigned stored = word >> (n % per_word * bits) & mask;
    return (stored + static_cast<unsigned>(m.zero_offset)) & mask;
  }
  [[nodiscard]] float scale(std::int64_t n, std::int64_t g) const {
    return m.scales.at(g * m.rows + n);
  }
};

template <int width>
struct packed_codes {
  static constexpr int bits = width;
  static constexpr std::int64_t per_word = 32 / bits;
  static constexpr unsigned mask = (1U << bits) - 1;
  const model::packed_matrix& m;

  [[nodiscard]] std::int64_t groups() const { return (m.columns + m.group - 1) / m.group; }
  [[nodiscard]] std::int64_t group_of(std::int64_t k) const {
    return group_of_input(m.groups, m.group, k);
  }
  [[nodiscard]] unsigned code(std::int64_t n, std::int64_t k) const {
    const std::int64_t words = (m.columns + per_word - 1) / per_word;
    return word_at(m.codes, n * words + k / per_word) >> (k % per_word * bits) & mask;
  }
  [[nodiscard]] unsigned zero(std::int64_t n, std::int64_t g) const {
    if (m.zeros.empty()) return 1U << (bits - 1);
    return word_at(m.zeros, n / per_word * groups() + g) >> (n % per_word * bits) & mask;
  }
  [[nodiscard]] float scale(std::int64_t n, std::int64_t g) const {
    return m.scales.at(n * groups() + g);
  }
};

/// Whole bytes: 8-bit floats as they are, signed integers moved up by 128.
struct byte_codes {
  static constexpr int bits = 8;
  const model::scaled_matrix& m;

  [[nodiscard]] bool floats() const { return m.type == model::element_type::f8_e4m3; }
  [[nodiscard]] std::int64_t groups() const {
    return (m.columns + m.block_columns - 1) / m.block_columns;
  }
  [[nodiscard]] std::int64_t group_of(std::int64_t k) const { return k / m.block_columns; }
  [[nodiscard]] unsigned code(std::int64_t n, std::int64_t k) const {
    const auto stored =
        std::to_integer<unsigned>(m.codes[static_cast<std::size_t>(n * m.columns + k)]);
    return floats() ? stored : stored ^ 128U;
  }
  [[nodiscard]] unsigned zero(std::int64_t, std::int64_t) const { return 128; }
  [[nodiscard]] float scale(std::int64_t n, std::int64_t g) const {
    return m.scales.at(n / m.block_rows * groups() + g);
  }
};

/// Calls body(codes) for the stored form; false where it has none.
template <class Body>
bool with_stored_codes(const model::weight_matrix& matrix, Body&& body) {
  if (const auto* awq = std::get_if<model::awq_matrix>(&matrix)) {
    body(awq_codes{*awq});
  } else if (const auto* gptq = std::get_if<model::gptq_matrix>(&matrix)) {
    gptq->bits == 4 ? body(gptq_codes<4>{*gptq}) : body(gptq_codes<8>{*gptq});
  } else if (const auto* packed = std::get_if<model::packed_matrix>(&matrix)) {
    packed->bits == 4 ? body(packed_codes<4>{*packed}) : body(packed_codes<8>{*packed});
  } else if (const auto* scaled = std::get_if<model::scaled_matrix>(&matrix)) {
    body(byte_codes{*scaled});
  } else {
    return false;
  }
  return true;
}

}  // namespace octavo::gpu
