// The kernels of elementwise.hpp, once for all instruction sets.
#pragma once

#include <cstddef>

#include "cpu/kernels/generic_math.hpp"

namespace octavo::cpu::generic {

template <class V>
void rms_norm(const float* x, const float* weight, std::size_t n, float epsilon, float* out) {
  auto squares = V::set1(0.0F);
  std::size_t i = 0;
  for (; i + V::width <= n; i += V::width) {
    const auto v = V::load_floats(x + i);
    squares = V::fma(v, v, squares);
  }
  if (i < n) {
    float rest[V::width] = {};
    for (std::size_t j = 0; i + j < n; ++j) rest[j] = x[i + j];
    const auto v = V::load_floats(rest);
    squares = V::fma(v, v, squares);
  }
  const float mean = sum_of_lanes<V>(squares) / static_cast<float>(n);
  const auto scale = V::set1(1.0F / __builtin_sqrtf(mean + epsilon));
  map<V>(x, weight, n, out, [&](auto v, auto w) { return V::mul(V::mul(v, scale), w); });
}

template <class V>
void silu_multiply(const float* gate, const float* up, std::size_t n, float* out) {
  map<V>(gate, up, n, out, [](auto g, auto u) {
    const auto denominator = V::add(V::set1(1.0F), exponential<V>(V::negated(g)));
    return V::mul(V::div(g, denominator), u);
  });
}

/// Hendrycks and Gimpel, "Gaussian Error Linear Units" (arXiv 1606.08415), in the
/// form with tanh.
template <class V>
void gelu_multiply(const float* gate, const float* up, std::size_t n, float* out) {
  map<V>(gate, up, n, out, [](auto g, auto u) {
    const auto cube = V::mul(V::mul(g, g), g);
    const auto inner = V::mul(V::set1(0.797884561F), V::fma(V::set1(0.044715F), cube, g));
    const auto half = V::mul(V::set1(0.5F), g);
    return V::mul(V::fma(half, hyperbolic_tangent<V>(inner), half), u);
  });
}

template <class V>
void add(const float* a, const float* b, std::size_t n, float* out) {
  map<V>(a, b, n, out, [](auto x, auto y) { return V::add(x, y); });
}

template <class V>
void scale(const float* x, float factor, std::size_t n, float* out) {
  map<V>(x, x, n, out, [&](auto v, auto) { return V::mul(v, V::set1(factor)); });
}

template <class V>
void soft_cap(const float* x, float cap, std::size_t n, float* out) {
  map<V>(x, x, n, out, [&](auto v, auto) {
    return V::mul(V::set1(cap), hyperbolic_tangent<V>(V::div(v, V::set1(cap))));
  });
}

}  // namespace octavo::cpu::generic
