// Tests only: weights in every stored form with random contents.
#pragma once

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "model/quantized/weight_matrix.hpp"

namespace octavo::model {

/// Random weights of any form, with the bytes they view.
class random_weights {
 public:
  explicit random_weights(unsigned seed) : random_(seed) {}

  weight_matrix blocks(element_type type, std::int64_t rows, std::int64_t columns) {
    return block_matrix{rows, columns, type, codes(rows * bytes_of(type, columns))};
  }
  weight_matrix awq(std::int64_t rows, std::int64_t columns, std::int64_t group, bool zeros) {
    return awq_matrix{rows,
                      columns,
                      group,
                      codes(columns * rows / 2),
                      zeros ? codes(columns / group * rows / 2) : std::span<const std::byte>{},
                      scales(columns / group * rows)};
  }
  weight_matrix gptq(std::int64_t rows, std::int64_t columns, int bits, std::int64_t group,
                     std::span<const std::byte> groups) {
    const std::int64_t count = columns / group;
    return gptq_matrix{rows,
                       columns,
                       bits,
                       group,
                       1,
                       codes(columns * rows * bits / 8),
                       codes(count * rows * bits / 8),
                       scales(count * rows),
                       groups};
  }
  weight_matrix packed(std::int64_t rows, std::int64_t columns, int bits, std::int64_t group,
                       bool zeros, std::span<const std::byte> groups) {
    const std::int64_t count = columns / group;
    const std::int64_t per_word = 32 / bits;
    return packed_matrix{
        rows,
        columns,
        bits,
        group,
        codes(rows * ((columns + per_word - 1) / per_word) * 4),
        zeros ? codes((rows + per_word - 1) / per_word * 4 * count) : std::span<const std::byte>{},
        scales(rows * count),
        groups};
  }
  weight_matrix scaled(element_type type, std::int64_t rows, std::int64_t columns,
                       std::int64_t block_rows, std::int64_t block_columns) {
    const std::int64_t down = (rows + block_rows - 1) / block_rows;
    const std::int64_t across = (columns + block_columns - 1) / block_columns;
    return scaled_matrix{rows,
                         columns,
                         type,
                         codes(rows * columns),
                         block_rows,
                         block_columns,
                         scales(down * across)};
  }
  /// The group of each input: in order, or in any.
  std::span<const std::byte> groups(std::int64_t columns, std::int64_t group, bool shuffled) {
    std::vector<std::int32_t> of(static_cast<std::size_t>(columns));
    for (std::size_t k = 0; k < of.size(); ++k) {
      of[k] = static_cast<std::int32_t>(static_cast<std::int64_t>(k) / group);
    }
    if (shuffled) std::shuffle(of.begin(), of.end(), random_);
    return keep(std::as_bytes(std::span{of}));
  }

 private:
  std::span<const std::byte> keep(std::span<const std::byte> bytes) {
    return kept_.emplace_back(bytes.begin(), bytes.end());
  }
  std::span<const std::byte> codes(std::int64_t size) {
    auto& bytes = kept_.emplace_back(static_cast<std::size_t>(size));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    return bytes;
  }
  scale_array scales(std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = 0.01F * static_cast<float>(1 + random_() % 1000);
    return {element_type::f32, keep(std::as_bytes(std::span{values}))};
  }

  std::mt19937 random_;
  std::vector<std::vector<std::byte>> kept_;
};

inline std::vector<float> row(const weight_matrix& matrix, std::int64_t n) {
  std::vector<float> out(static_cast<std::size_t>(columns_of(matrix)));
  dequantize_row(matrix, n, out);
  return out;
}

/// Also where both are NaN.
inline bool same_bits(const float* a, const float* b, std::int64_t count) {
  return std::memcmp(a, b, static_cast<std::size_t>(count) * sizeof(float)) == 0;
}

}  // namespace octavo::model
