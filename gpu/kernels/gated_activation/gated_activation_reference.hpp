// Gate functions in float64, for tests.
#pragma once

#include <cmath>
#include <numbers>

namespace octavo::gpu {

inline double silu_reference(double x) {
  return x / (1 + std::exp(-x));
}

inline double gelu_tanh_reference(double x) {
  const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(inner));
}

}  // namespace octavo::gpu
