// For tests of row-wise kernels: rows of random values in a kernel's type, there and
// back, and how far results are from a float64 reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <vector>

#include "gpu/cuda.hpp"
#include "gpu/runtime/memory.hpp"
#include "gpu/types.hpp"

namespace octavo::gpu {

template <class T>
constexpr dtype dtype_of = dtype::float32;
template <>
constexpr inline dtype dtype_of<__half> = dtype::float16;
template <>
constexpr inline dtype dtype_of<__nv_bfloat16> = dtype::bfloat16;

/// Half a unit in the last place of T, relative.
template <class T>
constexpr double rounding_of = 0x1p-24;
template <>
constexpr inline double rounding_of<__half> = 0x1p-11;
template <>
constexpr inline double rounding_of<__nv_bfloat16> = 0x1p-8;

/// n normal values times `scale`, as T.
template <class T>
std::vector<T> random_rows(std::size_t n, unsigned seed, float scale = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<T> values(n);
  for (T& v : values) v = static_cast<T>(normal(generator));
  return values;
}

template <class T>
device_array<T> on_device(stream& s, const std::vector<T>& values) {
  device_array<T> copy(values.size());
  copy.upload(s, values);
  return copy;
}

/// Waits for the stream.
template <class T>
std::vector<T> on_host(stream& s, const device_array<T>& values) {
  std::vector<T> copy(values.size());
  values.download(s, copy);
  s.synchronize();
  return copy;
}

/// The largest |actual - expected| / (|expected| + floor); infinite where one of the
/// two alone is NaN.
template <class T>
double worst_error(std::span<const T> actual, std::span<const double> expected, double floor) {
  double worst = actual.size() == expected.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
    const double is = static_cast<double>(static_cast<float>(actual[i]));
    if (std::isnan(is) && std::isnan(expected[i])) continue;
    const double error = std::fabs(is - expected[i]) / (std::fabs(expected[i]) + floor);
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  return worst;
}

template <class T>
double worst_error(const std::vector<T>& actual, const std::vector<double>& expected,
                   double floor) {
  return worst_error(std::span<const T>(actual), std::span<const double>(expected), floor);
}

}  // namespace octavo::gpu
