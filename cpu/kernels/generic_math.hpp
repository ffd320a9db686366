// Functions of float vectors, once for all instruction sets: V as in
// generic_matmul.hpp. There is one exponential, used in whole vectors only, so
// that a value does not depend on where in a row it stands.
#pragma once

#include <cstddef>

namespace octavo::cpu::generic {

/// Sum of the lanes, by halves, quarters and eighths.
template <class V>
[[gnu::always_inline]] inline float sum_of_lanes(typename V::floats v) {
  v = V::add(v, V::folded_halves(v));
  v = V::add(v, V::folded_quarters(v));
  return V::first(V::add(v, V::folded_eighths(v)));
}

template <class V>
[[gnu::always_inline]] inline float max_of_lanes(typename V::floats v) {
  v = V::max(v, V::folded_halves(v));
  v = V::max(v, V::folded_quarters(v));
  return V::first(V::max(v, V::folded_eighths(v)));
}

/// e^x to 2 units in the last place; 0 below -87.3, e^88 above 88, NaN of NaN.
/// x = n ln 2 + r with |r| <= ln 2 / 2, then the Taylor polynomial of degree 7.
template <class V>
[[gnu::always_inline]] inline typename V::floats exponential(typename V::floats x) {
  const auto lowest = V::set1(-87.3F);
  const auto clamped = V::min(V::set1(88.0F), V::max(lowest, x));
  const auto n = V::rounded(V::mul(clamped, V::set1(0x1.715476p0F)));
  // ln 2 in two parts, the first of which has bits to spare for n.
  auto r = V::fma(n, V::set1(-0x1.62e4p-1F), clamped);
  r = V::fma(n, V::set1(-0x1.7f7d1cp-20F), r);
  auto p = V::set1(1.0F / 5040);
  p = V::fma(p, r, V::set1(1.0F / 720));
  p = V::fma(p, r, V::set1(1.0F / 120));
  p = V::fma(p, r, V::set1(1.0F / 24));
  p = V::fma(p, r, V::set1(1.0F / 6));
  p = V::fma(p, r, V::set1(0.5F));
  p = V::fma(p, r, V::set1(1.0F));
  p = V::fma(p, r, V::set1(1.0F));
  return V::zero_where_less(x, lowest, V::mul(p, V::power_of_two(n)));
}

/// tanh x = 1 - 2 / (e^2x + 1); absolute error 2^-23.
template <class V>
[[gnu::always_inline]] inline typename V::floats hyperbolic_tangent(typename V::floats x) {
  const auto one = V::set1(1.0F);
  const auto e = exponential<V>(V::add(x, x));
  return V::sub(one, V::div(V::set1(2.0F), V::add(e, one)));
}

/// Applies `f`, from vectors to a vector, to n floats of a and b. The rest that
/// fills no vector goes through one padded with zeros.
template <class V, class Function>
[[gnu::always_inline]] inline void map(const float* a, const float* b, std::size_t n, float* out,
                                       Function&& f) {
  std::size_t i = 0;
  for (; i + V::width <= n; i += V::width) {
    V::store(out + i, f(V::load_floats(a + i), V::load_floats(b + i)), V::width);
  }
  if (i == n) return;
  float rest_a[V::width] = {};
  float rest_b[V::width] = {};
  for (std::size_t j = 0; i + j < n; ++j) {
    rest_a[j] = a[i + j];
    rest_b[j] = b[i + j];
  }
  V::store(out + i, f(V::load_floats(rest_a), V::load_floats(rest_b)), n - i);
}

}  // namespace octavo::cpu::generic
