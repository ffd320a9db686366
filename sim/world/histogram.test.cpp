// The histogram against sorting all values.
#include "sim/world/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support/catch.hpp"

using octavo::sim::histogram;

TEST_CASE("a histogram's quantiles are within 0.2 % of those of all values sorted") {
  std::mt19937_64 random{7};
  std::lognormal_distribution<double> gaps{9.0, 2.5};
  histogram h;
  std::vector<std::uint64_t> all;
  for (int i = 0; i < 50'000; ++i) {
    all.push_back(static_cast<std::uint64_t>(gaps(random)));
    h.record(all.back());
  }
  std::ranges::sort(all);
  double sum = 0;
  for (const std::uint64_t value : all) sum += static_cast<double>(value);
  CHECK(h.count() == all.size());
  CHECK(h.max() == all.back());
  CHECK(h.mean() == Catch::Approx(sum / 50'000).epsilon(1e-12));
  for (const double q : {0.0, 0.01, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0}) {
    const auto exact = static_cast<double>(all[static_cast<std::size_t>(q * 49'999)]);
    INFO("q " << q << ", exact " << exact << ", histogram " << h.quantile(q));
    CHECK(std::abs(h.quantile(q) - exact) <= 0.002 * exact + 1e-9);
  }
}

TEST_CASE("values below 256 and the largest value are exact") {
  histogram h;
  for (std::uint64_t v = 0; v < 256; ++v) h.record(v);
  for (int v = 0; v < 256; ++v) CHECK(h.quantile(v / 255.0) == Catch::Approx(v).margin(0.5));
  h.record(~std::uint64_t{0});
  CHECK(h.max() == ~std::uint64_t{0});
  CHECK(h.quantile(1) == Catch::Approx(static_cast<double>(~std::uint64_t{0})).epsilon(0.002));
}

TEST_CASE("a histogram of equal values has that value everywhere, an empty one zero") {
  histogram h;
  CHECK(h.quantile(0.5) == 0);
  CHECK(h.mean() == 0);
  for (int i = 0; i < 10; ++i) h.record(100'000);
  for (const double q : {0.0, 0.5, 1.0})
    CHECK(h.quantile(q) == Catch::Approx(100'000).epsilon(0.002));
  CHECK(h.mean() == 100'000);
}
