// Codes, zero points and scales of each stored form, by row, column and group.
#include "cpu/kernels/pack_grouped.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "cpu/kernels/pack_block.hpp"
#include "model/quantized/scalar.hpp"

namespace octavo::cpu {
namespace {

using model::load;

using bytes = std::span<const std::byte>;

std::uint32_t word_at(bytes words, std::int64_t i) {
  return load<std::uint32_t>(words.data() + 4 * i);
}

/// Code i of a dense run of 4- or 8-bit codes.
unsigned dense_code(bytes codes, int bits, std::int64_t i) {
  const auto byte = std::to_integer<unsigned>(codes[static_cast<std::size_t>(i * bits / 8)]);
  return bits == 8 ? byte : byte >> (i % 2 * 4) & 15U;
}

/// What packing asks of a stored form.
struct awq_reader {
  const model::awq_matrix& m;
  [[nodiscard]] unsigned nibble(bytes from, std::int64_t line, std::int64_t row) const {
    constexpr std::array<unsigned, 8> places{0, 4, 1, 5, 2, 6, 3, 7};
    return word_at(from, line * (m.rows / 8) + row / 8) >> (4 * places[row % 8]) & 15U;
  }
  [[nodiscard]] int bits() const { return 4; }
  [[nodiscard]] std::int64_t groups() const { return m.columns / m.group; }
  [[nodiscard]] std::int64_t group_of(std::int64_t k) const { return k / m.group; }
  [[nodiscard]] unsigned code(std::int64_t row, std::int64_t k) const {
    return nibble(m.codes, k, row);
  }
  [[nodiscard]] unsigned zero(std::int64_t row, std::int64_t g) const {
    return m.zeros.empty() ? 8 : nibble(m.zeros, g, row);
  }
  [[nodiscard]] float scale(std::int64_t row, std::int64_t g) const {
    return m.scales.at(g * m.rows + row);
  }
};

struct gptq_reader {
  const model::gptq_matrix& m;
  [[nodiscard]] unsigned mask() const { return (1U << m.bits) - 1; }
  [[nodiscard]] int bits() const { return m.bits; }
  [[nodiscard]] std::int64_t groups() const { return m.columns / m.group; }
  [[nodiscard]] std::int64_t group_of(std::int64_t k) const {
    return m.groups.empty() ? k / m.group : load<std::int32_t>(m.groups.data() + 4 * k);
  }
  [[nodiscard]] unsigned code(std::int64_t row, std::int64_t k) const {
    const std::int64_t per_word = 32 / m.bits;
    return word_at(m.codes, k / per_word * m.rows + row) >> (k % per_word * m.bits) & mask();
  }
  [[nodiscard]] unsigned zero(std::int64_t row, std::int64_t g) const {
    const unsigned stored = dense_code(m.zeros.subspan(g * (m.rows * m.bits / 8)), m.bits, row);
    return (stored + static_cast<unsigned>(m.zero_offset)) & mask();
  }
  [[nodiscard]] float scale(std::int64_t row, std::int64_t g) const {
    return m.scales.at(g * m.rows + row);
  }
};

struct packed_reader {
  const model::packed_matrix& m;
  [[nodiscard]] int bits() const { return m.bits; }
  [[nodiscard]] std::int64_t groups() const { return (m.columns + m.group - 1) / m.group; }
  [[nodiscard]] std::int64_t group_of(std::int64_t k) const {
    return m.groups.empty() ? k / m.group : load<std::int32_t>(m.groups.data() + 4 * k);
  }
  [[nodiscard]] unsigned code(std::int64_t row, std::int64_t k) const {
    return dense_code(m.codes.subspan(row * ((m.columns * m.bits + 31) / 32 * 4)), m.bits, k);
  }
  [[nodiscard]] unsigned zero(std::int64_t row, std::int64_t g) const {
    if (m.zeros.empty()) return 1U << (m.bits - 1);
    const std::int64_t per_word = 32 / m.bits;
    return dense_code(m.zeros.subspan(4 * (row / per_word * groups() + g)), m.bits, row % per_word);
  }
  [[nodiscard]] float scale(std::int64_t row, std::int64_t g) const {
    return m.scales.at(row * groups() + g);
  }
};

/// Signed bytes.
struct scaled_reader {
  const model::scaled_matrix& m;
  [[nodiscard]] int bits() const { return 8; }
  [[nodiscard]] std::int64_t groups() const {
    return (m.columns + m.block_columns - 1) / m.block_columns;
  }
  [[nodiscard]] std::int64_t group_of(std::int64_t k) const { return k / m.block_columns; }
  [[nodiscard]] unsigned code(std::int64_t row, std::int64_t k) const {
    return std::to_integer<unsigned>(m.codes[static_cast<std::size_t>(row * m.columns + k)]) ^ 128U;
  }
  [[nodiscard]] unsigned zero(std::int64_t, std::int64_t) const { return 128; }
  [[nodiscard]] float scale(std::int64_t row, std::int64_t g) const {
    return m.scales.at(row / m.block_rows * groups() + g);
  }
};

/// Calls body(reader) for the stored form; blocks have none.
template <class Body>
void with_reader(const model::weight_matrix& matrix, Body&& body) {
  if (const auto* awq = std::get_if<model::awq_matrix>(&matrix)) body(awq_reader{*awq});
  if (const auto* gptq = std::get_if<model::gptq_matrix>(&matrix)) body(gptq_reader{*gptq});
  if (const auto* packed = std::get_if<model::packed_matrix>(&matrix)) body(packed_reader{*packed});
  if (const auto* scaled = std::get_if<model::scaled_matrix>(&matrix)) body(scaled_reader{*scaled});
}

}  // namespace

grouping group_inputs(const model::weight_matrix& matrix) {
  grouping made;
  const auto columns = static_cast<std::int32_t>(model::columns_of(matrix));
  with_reader(matrix, [&](const auto& reader) {
    made.kind = reader.bits() == 8 ? layout::u8_group : layout::u4_group;
    made.groups = static_cast<std::size_t>(reader.groups());
    std::vector<std::vector<std::int32_t>> members(made.groups);
    for (std::int32_t k = 0; k < columns; ++k) members[reader.group_of(k)].push_back(k);
    for (std::size_t g = 0; g < made.groups; ++g) {
      made.order.insert(made.order.end(), members[g].begin(), members[g].end());
      while (made.order.size() % block_inputs != 0) made.order.push_back(-1);
      made.block_groups.resize(made.order.size() / block_inputs, static_cast<std::uint32_t>(g));
    }
  });
  bool plain = made.order.size() == static_cast<std::size_t>(columns);
  for (std::size_t i = 0; plain && i < made.order.size(); ++i) {
    plain = made.order[i] == static_cast<std::int32_t>(i);
  }
  if (plain) made.order.clear();
  return made;
}

void pack_grouped_tile(const model::weight_matrix& matrix, const grouping& inputs, std::size_t tile,
                       std::byte* codes, std::byte* fields) {
  const layout_bytes sizes = bytes_of(inputs.kind);
  const std::int64_t rows = model::rows_of(matrix);
  with_reader(matrix, [&](const auto& reader) {
    for (std::size_t r = 0; r < tile_rows; ++r) {
      const auto row = static_cast<std::int64_t>(tile * tile_rows + r);
      for (std::size_t g = 0; g < inputs.groups; ++g) {
        std::byte* field = fields + g * sizes.scales_per_block;
        const float scale = row < rows ? reader.scale(row, static_cast<std::int64_t>(g)) : 0.0F;
        std::memcpy(field + 4 * r, &scale, 4);
        field[32 + r] = static_cast<std::byte>(
            row < rows ? reader.zero(row, static_cast<std::int64_t>(g)) : 0U);
      }
      for (std::size_t b = 0; b < inputs.block_groups.size(); ++b) {
        codes32 block{};
        for (std::size_t i = 0; i < block_inputs && row < rows; ++i) {
          const std::size_t at = b * block_inputs + i;
          const std::int64_t k =
              inputs.order.empty() ? static_cast<std::int64_t>(at) : inputs.order[at];
          if (k >= 0) block[i] = static_cast<std::uint8_t>(reader.code(row, k));
        }
        write_codes(inputs.kind, block, codes + b * sizes.codes_per_block, r);
      }
    }
  });
}

}  // namespace octavo::cpu
