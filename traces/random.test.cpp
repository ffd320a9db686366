// Portable functions against the standard library's, draws against the moments
// that textbooks give, and the mixer against SplitMix64's published sequence.
#include "traces/random.hpp"

#include <cmath>

#include "tests/support/catch.hpp"

using namespace octavo::traces;
using Catch::Approx;

namespace {

constexpr double turn = 6.283185307179586477;
constexpr std::uint64_t draws_count = 200'000;

struct moments {
  double mean;
  double variance;
};

template <class Draw>
moments moments_of(Draw draw) {
  double sum = 0;
  double squares = 0;
  for (std::uint64_t i = 0; i < draws_count; ++i) {
    const double x = draw(i);
    sum += x;
    squares += x * x;
  }
  const double mean = sum / draws_count;
  return {mean, squares / draws_count - mean * mean};
}

}  // namespace

TEST_CASE("the mixer is SplitMix64") {
  // The generator's first outputs from state 0: its state grows by the golden gamma.
  CHECK(mix(0) == 0xe220a8397b1dcdafU);
  CHECK(mix(0x9e3779b97f4a7c15U) == 0x6e789e6aa1b965f4U);
  CHECK(mix(2 * 0x9e3779b97f4a7c15U) == 0x06c45d188009454fU);
}

TEST_CASE("portable functions agree with the standard library's") {
  const random_stream source(3, 1);
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const double u = source.uniform(i);
    const double wide = std::exp((u - 0.5) * 60);
    REQUIRE(portable_log(wide) == Approx(std::log(wide)).epsilon(1e-13).margin(1e-15));
    REQUIRE(portable_log(u) == Approx(std::log(u)).epsilon(1e-13).margin(1e-15));
    const double x = (u - 0.5) * 200;
    REQUIRE(portable_exp(x) == Approx(std::exp(x)).epsilon(1e-13));
    REQUIRE(portable_cos_turns(u * 5) == Approx(std::cos(u * 5 * turn)).margin(1e-13));
  }
  CHECK(portable_exp(0) == 1);
  CHECK(portable_log(1) == 0);
  CHECK(portable_exp(-1e6) == 0);
}

TEST_CASE("draws have the moments of their distributions") {
  const random_stream source(42, 7);
  const auto uniform = moments_of([&](auto i) { return source.uniform(i); });
  CHECK(uniform.mean == Approx(0.5).margin(0.005));
  CHECK(uniform.variance == Approx(1.0 / 12).margin(0.002));
  const auto exponential = moments_of([&](auto i) { return source.exponential(i); });
  CHECK(exponential.mean == Approx(1).margin(0.01));
  CHECK(exponential.variance == Approx(1).margin(0.03));
  const auto normal = moments_of([&](auto i) { return source.normal(i); });
  CHECK(normal.mean == Approx(0).margin(0.01));
  CHECK(normal.variance == Approx(1).margin(0.02));
  for (const double shape : {0.25, 1.0, 4.0}) {
    const auto gamma = moments_of([&](auto i) { return source.gamma(i, shape); });
    CHECK(gamma.mean == Approx(shape).epsilon(0.02));
    CHECK(gamma.variance == Approx(shape).epsilon(0.05));
  }
}

TEST_CASE("the normal quantile meets the tables") {
  // Phi(-1.96) = 0.0249979, Phi(1) = 0.8413447: shares of draws below.
  const random_stream source(5, 5);
  std::size_t below_one = 0;
  std::size_t below_tail = 0;
  for (std::uint64_t i = 0; i < draws_count; ++i) {
    below_one += source.normal(i) < 1 ? 1U : 0U;
    below_tail += source.normal(i) < -1.96 ? 1U : 0U;
  }
  CHECK(static_cast<double>(below_one) / draws_count == Approx(0.8413447).margin(0.003));
  CHECK(static_cast<double>(below_tail) / draws_count == Approx(0.0249979).margin(0.0015));
}

TEST_CASE("streams, seeds and indices give different draws, equal ones the same") {
  CHECK(random_stream(1, 2).bits(3) == random_stream(1, 2).bits(3));
  CHECK(random_stream(1, 2).bits(3) != random_stream(2, 1).bits(3));
  CHECK(random_stream(1, 2).bits(3) != random_stream(1, 3).bits(2));
  CHECK(random_stream(1, 2).bits(3) != random_stream(1, 2).bits(4));
  for (std::uint64_t i = 0; i < 1000; ++i) REQUIRE(random_stream(1, 2).below(i, 3) < 3);
}
