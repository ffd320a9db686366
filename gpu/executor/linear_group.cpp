// Groups of linear layers: see linear_group.hpp.
#include "gpu/executor/linear_group.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "model/quantized/weight_stack.hpp"

namespace octavo::gpu {
namespace {

/// Zeros for parts without a bias; empty where none has one.
std::vector<float> stacked_bias(std::span<const stored_linear> parts) {
  std::vector<float> all;
  if (std::ranges::all_of(parts, [](const auto& part) { return part.bias.empty(); })) return all;
  for (const stored_linear& part : parts) {
    const auto end = all.size() + static_cast<std::size_t>(model::rows_of(part.weight.matrix));
    all.insert(all.end(), part.bias.begin(), part.bias.end());
    all.resize(end);
  }
  return all;
}

bool is_plain(const model::weight_matrix& matrix) {
  return std::holds_alternative<model::block_matrix>(matrix);
}

}  // namespace

linear_group::linear_group(std::span<const stored_linear> parts, const weight_options& options,
                           const std::string& name, stream& on, const parallel_for& parallel) {
  std::vector<model::weight_matrix> matrices;
  for (const stored_linear& part : parts) {
    matrices.push_back(part.weight.matrix);
    outputs_.push_back(static_cast<int>(model::rows_of(part.weight.matrix)));
  }
  if (std::ranges::all_of(matrices, is_plain)) {
    // All of them become 16-bit numbers, whatever blocks they are stored as.
    products_.emplace_back(upload_table(matrices, options.type, on, parallel), stacked_bias(parts),
                           options.type, on);
  } else if (const auto stacked = model::stack_rows(matrices)) {
    products_.emplace_back(stacked->matrix, stacked_bias(parts), options, name, on, parallel);
  } else {
    for (const stored_linear& part : parts) {
      products_.emplace_back(part.weight.matrix, part.bias, options, name, on, parallel);
    }
  }
}

int linear_group::outputs() const {
  return std::accumulate(outputs_.begin(), outputs_.end(), 0);
}

std::size_t linear_group::bytes() const {
  std::size_t sum = 0;
  for (const device_linear& product : products_) sum += product.bytes();
  return sum;
}

linear_group::place linear_group::place_of(std::size_t part, int tokens) const {
  const int before = std::accumulate(outputs_.begin(), outputs_.begin() + part, 0);
  if (products_.size() == 1) return {static_cast<std::size_t>(before), outputs()};
  return {static_cast<std::size_t>(before) * static_cast<std::size_t>(tokens), outputs_[part]};
}

gemm_needs linear_group::needs(const product_context& with, int tokens) const {
  gemm_needs needs;
  for (const device_linear& product : products_) needs |= product.needs(with, tokens);
  return needs;
}

void linear_group::multiply(stream& on, const product_context& with, const void* activations,
                            int tokens, std::uint16_t* output) const {
  for (const device_linear& product : products_) {
    product.multiply(on, with, activations, tokens, output, with.type);
    output += static_cast<std::size_t>(product.outputs()) * static_cast<std::size_t>(tokens);
  }
}

}  // namespace octavo::gpu
