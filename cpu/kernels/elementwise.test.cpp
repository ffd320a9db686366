// Element-wise kernels against float64, in odd lengths.
#include "cpu/kernels/elementwise.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "cpu/kernels/test_matrices.hpp"
#include "tests/support/catch.hpp"

using namespace octavo::cpu;

namespace {

double silu(double x) {
  return x / (1 + std::exp(-x));
}
double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

}  // namespace

TEST_CASE("norms agree with float64") {
  for (const isa kind : available_isas()) {
    for (const std::size_t n : {1U, 7U, 64U, 576U, 577U}) {
      const auto x = make_random_rows(1, n, 1);
      const auto weight = make_random_rows(1, n, 2);
      std::vector<float> out(n);
      rms_norm(x.data(), weight.data(), n, 1e-5F, out.data(), kernels_for(kind));
      double mean = 0;
      for (const float v : x) mean += double{v} * v / static_cast<double>(n);
      for (std::size_t i = 0; i < n; ++i) {
        const double expected = x[i] / std::sqrt(mean + 1e-5F) * weight[i];
        CHECK(out[i] == Catch::Approx(expected).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("activations agree with float64 over the whole range") {
  for (const isa kind : available_isas()) {
    INFO(to_string(kind));
    std::vector<float> gate;
    for (float v = -200.0F; v < 200.0F; v += 0.0371F) gate.push_back(v);
    const std::vector<float> up(gate.size(), 2.0F);
    std::vector<float> out(gate.size());
    silu_multiply(gate.data(), up.data(), gate.size(), out.data(), kernels_for(kind));
    double worst = 0;
    for (std::size_t i = 0; i < gate.size(); ++i) {
      const double expected = 2 * silu(gate[i]);
      worst = std::max(worst, std::fabs(out[i] - expected) / (1e-30 + std::fabs(expected) + 1e-6));
    }
    // Two units of the exponential, three roundings.
    CHECK(worst < 4e-7);
    gelu_multiply(gate.data(), up.data(), gate.size(), out.data(), kernels_for(kind));
    worst = 0;
    for (std::size_t i = 0; i < gate.size(); ++i) {
      worst = std::max(worst, std::fabs(out[i] - 2 * gelu(gate[i])) / (1 + std::fabs(gate[i])));
    }
    CHECK(worst < 1e-6);
  }
}

TEST_CASE("a value's function does not depend on where it stands") {
  for (const isa kind : available_isas()) {
    const auto gate = make_random_rows(1, 37, 1);
    const auto up = make_random_rows(1, 37, 2);
    std::vector<float> all(37);
    silu_multiply(gate.data(), up.data(), 37, all.data(), kernels_for(kind));
    for (std::size_t i = 0; i < 37; ++i) {
      float one = 0;
      silu_multiply(gate.data() + i, up.data() + i, 1, &one, kernels_for(kind));
      CHECK(std::memcmp(&one, &all[i], sizeof one) == 0);
    }
  }
}

TEST_CASE("rotary embedding turns pairs, in both orders, and leaves the rest") {
  // A quarter turn of pair 0, none of pair 1.
  const float cosines[] = {0.0F, 1.0F};
  const float sines[] = {1.0F, 0.0F};
  float halves[] = {1, 2, 3, 4, 5};
  rope(halves, cosines, sines, 2, rope_pairs::halves);
  CHECK(std::vector<float>(halves, halves + 5) == std::vector<float>{-3, 2, 1, 4, 5});
  float neighbors[] = {1, 2, 3, 4, 5};
  rope(neighbors, cosines, sines, 2, rope_pairs::neighbors);
  CHECK(std::vector<float>(neighbors, neighbors + 5) == std::vector<float>{-2, 1, 3, 4, 5});
}

TEST_CASE("sums, scaling and soft caps") {
  for (const isa kind : available_isas()) {
    const auto a = make_random_rows(1, 19, 1);
    const auto b = make_random_rows(1, 19, 2);
    std::vector<float> out = a;
    add(out.data(), b.data(), 19, out.data(), kernels_for(kind));
    for (std::size_t i = 0; i < 19; ++i) CHECK(out[i] == a[i] + b[i]);
    scale(a.data(), 3.0F, 19, out.data(), kernels_for(kind));
    for (std::size_t i = 0; i < 19; ++i) CHECK(out[i] == a[i] * 3.0F);
    soft_cap(a.data(), 5.0F, 19, out.data(), kernels_for(kind));
    for (std::size_t i = 0; i < 19; ++i) {
      CHECK(out[i] == Catch::Approx(5 * std::tanh(double{a[i]} / 5)).margin(2e-6));
    }
  }
}

TEST_CASE("argmax is the first of the largest, and never NaN") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto of = [](std::vector<float> x) { return argmax(x.data(), x.size()); };
  CHECK(of({1, 3, 3, 2}) == 1);
  CHECK(of({nan, -5, nan, -4}) == 3);
  CHECK(of({-INFINITY, -INFINITY}) == 0);
  CHECK(of({nan, -INFINITY}) == 1);
  CHECK(of({nan, nan}) == 0);
}
