// A tensor as it lies in a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/quantized/element_type.hpp"

namespace octavo::model {

struct stored_tensor {
  /// The name in the file, for messages.
  std::string name;
  element_type type{};
  /// C order: the last dimension is the contiguous one. Empty for a scalar.
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;

  [[nodiscard]] std::int64_t elements() const {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    return count;
  }
};

/// "[576, 1536]".
[[nodiscard]] inline std::string to_string(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  }
  return text + "]";
}

}  // namespace octavo::model
