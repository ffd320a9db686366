// The choice of logits, by hand.
#include "cpu/decoder/likely_logits.hpp"

#include <cmath>
#include <limits>

#include "tests/support/catch.hpp"

using namespace octavo::cpu;
using ids = std::vector<std::uint32_t>;

TEST_CASE("likely logits are those within the margin of the largest") {
  const std::vector<float> logits{1.0F, 5.0F, 3.5F, 2.0F, 4.75F};
  CHECK(likely_logits(logits, 1.5F, 10) == ids{1, 2, 4});
  CHECK(likely_logits(logits, 0, 10) == ids{1});
  CHECK(likely_logits(logits, 100, 10) == ids{0, 1, 2, 3, 4});
}

TEST_CASE("of more likely logits than wanted the largest are taken, of equal ones the first") {
  const std::vector<float> logits{2.0F, 3.0F, 2.0F, 4.0F, 2.0F};
  CHECK(likely_logits(logits, 5, 3) == ids{0, 1, 3});
  CHECK(likely_logits(logits, 5, 4) == ids{0, 1, 2, 3});
}

TEST_CASE("no logit that is not a number is likely") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(likely_logits(std::vector<float>{nan, 1.0F, nan}, 2, 3) == ids{1});
  CHECK(likely_logits(std::vector<float>{nan, nan}, 2, 3).empty());
  CHECK(likely_logits({}, 2, 3).empty());
}

TEST_CASE("an inner product is that of float64, whatever its length") {
  for (const std::size_t n : {0U, 1U, 7U, 8U, 9U, 640U, 643U}) {
    std::vector<float> a(n);
    std::vector<float> b(n);
    double expected = 0;
    for (std::size_t i = 0; i < n; ++i) {
      a[i] = std::sin(static_cast<float>(i));
      b[i] = std::cos(static_cast<float>(3 * i)) + 0.5F;
      expected += static_cast<double>(a[i]) * b[i];
    }
    CAPTURE(n);
    CHECK(inner_product(a, b) == Catch::Approx(expected).margin(1e-4));
  }
}
