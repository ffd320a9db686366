// RMS norm in float64, for tests.
#pragma once

#include <cmath>
#include <span>
#include <vector>

namespace octavo::gpu {

/// x / sqrt(mean(x^2) + epsilon) * weight for one row.
inline std::vector<double> rms_norm_reference(std::span<const double> x,
                                              std::span<const double> weight, double epsilon) {
  double squares = 0;
  for (const double v : x) squares += v * v;
  const double factor = 1 / std::sqrt(squares / static_cast<double>(x.size()) + epsilon);
  std::vector<double> out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = x[i] * factor * weight[i];
  return out;
}

}  // namespace octavo::gpu
