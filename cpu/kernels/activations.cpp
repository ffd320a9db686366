// Storage of quantized activations; the arithmetic is the instruction set's.
#include "cpu/kernels/activations.hpp"

#include <algorithm>
#include <array>
#include <cassert>

namespace octavo::cpu {

void quantized_rows::resize(std::size_t rows, std::size_t columns, std::size_t terms) {
  assert(terms == 1 || terms == 2);
  rows_ = rows;
  columns_ = columns;
  terms_ = terms;
  blocks_ = (columns + block_inputs - 1) / block_inputs;
  const std::size_t slots = rows * terms * blocks_;
  codes_.resize(slots * block_inputs);
  scales_.resize(slots);
  sums_.resize(slots);
  pairs_.resize(slots * 4);
}

block_slot quantized_rows::slot(std::size_t row, std::size_t block, std::size_t term) {
  const std::size_t line = row * terms_ + term;
  const std::size_t panel = line / panel_rows;
  const std::size_t width = std::min(panel_rows, rows_ * terms_ - panel * panel_rows);
  const std::size_t at = panel * panel_rows * blocks_ + block * width + line % panel_rows;
  return {codes_.data() + at * block_inputs, scales_.data() + at, sums_.data() + at,
          pairs_.data() + at * 4};
}

void quantized_rows::quantize_block(std::size_t row, std::size_t block, const float* values,
                                    const kernel_table& kernels) {
  const block_slot first = slot(row, block);
  kernels.quantize_block(values, first);
  if (terms_ == 1) return;
  std::array<float, block_inputs> rest{};
  for (std::size_t i = 0; i < block_inputs; ++i) {
    rest[i] = values[i] - *first.scale * static_cast<float>(first.codes[i]);
  }
  kernels.quantize_block(rest.data(), slot(row, block, 1));
}

void quantized_rows::quantize(std::size_t row, const float* values, const kernel_table& kernels) {
  assert(row < rows_);
  const std::size_t whole = columns_ / block_inputs;
  for (std::size_t block = 0; block < whole; ++block) {
    quantize_block(row, block, values + block * block_inputs, kernels);
  }
  if (whole == blocks_) return;
  std::array<float, block_inputs> last{};
  std::copy(values + whole * block_inputs, values + columns_, last.begin());
  quantize_block(row, whole, last.data(), kernels);
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
    quantize_block(row, block, gathered.data(), kernels);
  }
}

rows_view quantized_rows::view() const {
  return {rows_ * terms_, terms_,       blocks_,      codes_.data(),
          scales_.data(), sums_.data(), pairs_.data()};
}

}  // namespace octavo::cpu
