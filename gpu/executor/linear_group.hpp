// Linear layers that take the same activations: queries, keys and values, or an MLP's
// gate and its other half. Where their weights are of one form they are stored one
// beneath another and multiplied at once, which is fewer and larger products; else one
// after another. Results lie in one buffer either way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gpu/executor/device_linear.hpp"
#include "model/quantized/weight_slice.hpp"

namespace octavo::gpu {

/// A layer of a group before it is put on a device.
struct stored_linear {
  model::weight_slice weight;
  std::vector<float> bias;  ///< may be empty
};

class linear_group {
 public:
  linear_group() = default;
  /// As device_linear's constructor. Parts have the same inputs; `name` is the group's,
  /// for messages.
  linear_group(std::span<const stored_linear> parts, const weight_options& options,
               const std::string& name, stream& on, const parallel_for& parallel);

  /// Outputs of a part, of all parts, and products that compute them.
  [[nodiscard]] int outputs(std::size_t part) const { return outputs_[part]; }
  [[nodiscard]] int outputs() const;
  [[nodiscard]] std::size_t products() const { return products_.size(); }
  /// Bytes on the device.
  [[nodiscard]] std::size_t bytes() const;

  /// Where a part's results lie in the output for `tokens` tokens, counted in elements:
  /// its row of token i starts at first + i * stride.
  struct place {
    std::size_t first = 0;
    int stride = 0;
  };
  [[nodiscard]] place place_of(std::size_t part, int tokens) const;

  /// What products of `tokens` tokens need of the workspace.
  [[nodiscard]] gemm_needs needs(const product_context& with, int tokens) const;
  /// Writes all parts' results, 16-bit numbers of with.type, to `output`, which has room for
  /// tokens * outputs(). Queued; can be captured.
  void multiply(stream& on, const product_context& with, const void* activations, int tokens,
                std::uint16_t* output) const;

 private:
  /// One for all parts, or one for each.
  std::vector<device_linear> products_;
  std::vector<int> outputs_;  ///< of each part
};

}  // namespace octavo::gpu
