// Storage of quantized activations; the arithmetic is the instruction set's.
#include "cpu/kernels/activations.hpp"

#include <algorithm>
#include <array>
#include <cassert>

namespace octavo::cpu {

void quantized_rows::resize(std::size_t rows, std::size_t columns) {
  rows_ = rows;
  columns_ = columns;
  blocks_ = (columns + block_inputs - 1) / block_inputs;
  codes_.resize(rows * blocks_ * block_inputs);
  scales_.resize(rows * blocks_);
  sums_.resize(rows * blocks_);
  pairs_.resize(rows * blocks_ * 4);
}

block_slot quantized_rows::slot(std::size_t row, std::size_t block) {
  const std::size_t panel = row / panel_rows;
  const std::size_t width = std::min(panel_rows, rows_ - panel * panel_rows);
  const std::size_t at = panel * panel_rows * blocks_ + block * width + row % panel_rows;
  return {codes_.data() + at * block_inputs, scales_.data() + at, sums_.data() + at,
          pairs_.data() + at * 4};
}

void quantized_rows::quantize(std::size_t row, const float* values, const kernel_table& kernels) {
  assert(row < rows_);
  const std::size_t whole = columns_ / block_inputs;
  for (std::size_t block = 0; block < whole; ++block) {
    kernels.quantize_block(values + block * block_inputs, slot(row, block));
  }
  if (whole == blocks_) return;
  std::array<float, block_inputs> last{};
  std::copy(values + whole * block_inputs, values + columns_, last.begin());
  kernels.quantize_block(last.data(), slot(row, whole));
}

void quantized_rows::quantize_ordered(std::size_t row, const float* values,
                                      std::span<const std::int32_t> order,
                                      const kernel_table& kernels) {
  assert(row < rows_ && order.size() == blocks_ * block_inputs);
  for (std::size_t block = 0; block < blocks_; ++block) {
    std::array<float, block_inputs> gathered{};
    for (std::size_t i = 0; i < block_inputs; ++i) {
      const std::int32_t from = order[block * block_inputs + i];
      if (from >= 0) gathered[i] = values[from];
    }
    kernels.quantize_block(gathered.data(), slot(row, block));
  }
}

rows_view quantized_rows::view() const {
  return {rows_, blocks_, codes_.data(), scales_.data(), sums_.data(), pairs_.data()};
}

}  // namespace octavo::cpu
