// Activations as the integer kernels take them: int8 codes with a float scale
// for every 32 inputs of every token. A token's codes depend on that token only.
// Where 8 bits are too few, a second term holds what rounding left of the first.
//
//   quantized_rows x;
//   x.resize(tokens, columns);
//   for (t …) x.quantize(t, row_of(t));        // any threads, any order
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpu/kernels/kernel_table.hpp"
#include "cpu/kernels/layout.hpp"

namespace octavo::cpu {

/// Codes lie in [-127, 127]: value ≈ code x scale, scale = largest magnitude / 127.
/// Kept with every block: scale x sum of codes, for weights with a minimum, and
/// for each half of 16 codes two negated sums, of codes 0, 1 and of codes 2, 3 of
/// every four, which start a kernel's 16-bit sums (two lanes a row) where weight
/// codes are offset.
class quantized_rows {
 public:
  /// Makes room for `rows` rows of `terms` (1 or 2) terms each; what was there is
  /// lost. Padding up to whole blocks is zero.
  void resize(std::size_t rows, std::size_t columns, std::size_t terms = 1);

  /// Fills row `row` from `columns` floats. A block with a value that is not
  /// finite gets the scale NaN, so that the error is seen and not hidden. With two
  /// terms the second is what is left of the value, rounded the same way, and the
  /// error 254 times smaller at least.
  void quantize(std::size_t row, const float* values,
                const kernel_table& kernels = active_kernels());

  /// The same where weights put their inputs into an order of their own
  /// (packed_weights::input_order): column i is values[order[i]], 0 where it is -1.
  void quantize_ordered(std::size_t row, const float* values, std::span<const std::int32_t> order,
                        const kernel_table& kernels = active_kernels());

  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::size_t columns() const { return columns_; }
  [[nodiscard]] std::size_t terms() const { return terms_; }
  [[nodiscard]] rows_view view() const;

  /// One block, for tests and tools.
  [[nodiscard]] block_slot slot(std::size_t row, std::size_t block, std::size_t term = 0);

 private:
  void quantize_block(std::size_t row, std::size_t block, const float* values,
                      const kernel_table& kernels);

  std::size_t rows_ = 0;
  std::size_t columns_ = 0;
  std::size_t terms_ = 1;
  std::size_t blocks_ = 0;
  std::vector<std::int8_t> codes_;
  std::vector<float> scales_;
  std::vector<float> sums_;
  std::vector<std::int16_t> pairs_;
};

}  // namespace octavo::cpu
