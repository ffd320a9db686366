// Tests of matrix products only: random operands, device copies, and the comparison
// of results with sums in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "gpu/kernels/dense_gemm/gemm_workspace.hpp"
#include "gpu/runtime/memory.hpp"
#include "gpu/types.hpp"
#include "model/quantized/scalar.hpp"

namespace octavo::gpu {

inline float number_of(dtype type, std::uint16_t bits) {
  return type == dtype::float16 ? model::half_to_float(bits) : model::bfloat_to_float(bits);
}

inline std::uint16_t bits_as_type(dtype type, float value) {
  return type == dtype::float16 ? model::float_to_half(value) : model::float_to_bfloat(value);
}

/// As a kernel holds it after rounding to `type`.
inline double rounded(dtype type, float value) {
  return number_of(type, bits_as_type(type, value));
}

/// Numbers between -1 and 1 of a 16-bit type.
inline std::vector<std::uint16_t> random_numbers(dtype type, std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> unit(-1.0F, 1.0F);
  std::vector<std::uint16_t> made(n);
  for (auto& bits : made) bits = bits_as_type(type, unit(random));
  return made;
}

/// A copy on the device; an array without elements is a null pointer there.
template <class T>
device_array<T> on_device(stream& s, const std::vector<T>& values) {
  device_array<T> made(values.size());
  if (!values.empty()) made.upload(s, values);
  return made;
}

/// Scratch and counters of exactly the size that is needed.
struct test_workspace {
  device_array<std::byte> data;
  device_array<int> counters;

  test_workspace(stream& s, const gemm_needs& needs)
      : data(needs.bytes), counters(static_cast<std::size_t>(needs.counters)) {
    if (needs.counters > 0) counters.fill_zero(s);
  }
  gemm_workspace view() {
    return {data.data(), data.size(), counters.data(), static_cast<int>(counters.size())};
  }
};

/// A product as it should be.
struct expected_product {
  int tokens = 0;
  int outputs = 0;
  int inputs = 0;
  /// Activation of a token and input, weight of an output and input.
  std::function<double(int, int)> activation;
  std::function<double(int, int)> weight;
  std::function<double(int)> bias = [](int) { return 0.0; };
};

/// Largest error of `got`, in units of the sum of magnitudes of its terms.
inline double worst_error(const expected_product& e, std::span<const float> got) {
  std::vector<double> x(static_cast<std::size_t>(e.tokens) * e.inputs);
  for (int m = 0; m < e.tokens; ++m) {
    for (int k = 0; k < e.inputs; ++k)
      x[static_cast<std::size_t>(m) * e.inputs + k] = e.activation(m, k);
  }
  std::vector<double> w(static_cast<std::size_t>(e.inputs));
  double worst = 0;
  for (int n = 0; n < e.outputs; ++n) {
    for (int k = 0; k < e.inputs; ++k) w[static_cast<std::size_t>(k)] = e.weight(n, k);
    for (int m = 0; m < e.tokens; ++m) {
      double sum = e.bias(n);
      double magnitude = std::fabs(sum) + 1e-9;
      for (int k = 0; k < e.inputs; ++k) {
        const double term =
            x[static_cast<std::size_t>(m) * e.inputs + k] * w[static_cast<std::size_t>(k)];
        sum += term;
        magnitude += std::fabs(term);
      }
      const double error =
          std::fabs(got[static_cast<std::size_t>(m) * e.outputs + n] - sum) / magnitude;
      // A NaN counts as the worst there is.
      worst = std::isnan(error) ? 1e30 : std::max(worst, error);
    }
  }
  return worst;
}

/// Sums in float of exactly known products may be wrong by this much of their terms.
inline constexpr double float_sum_error = 4e-6;

}  // namespace octavo::gpu
