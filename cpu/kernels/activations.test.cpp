// Quantized activations: codes, scales and the sums kept with them.
#include "cpu/kernels/activations.hpp"

#include <cmath>
#include <limits>

#include "cpu/kernels/test_matrices.hpp"
#include "tests/support/catch.hpp"

using namespace octavo::cpu;

TEST_CASE("activations round to the nearest of 255 codes of their block") {
  for (const isa kind : available_isas()) {
    INFO(to_string(kind));
    constexpr std::size_t columns = 96;
    const auto values = make_random_rows(11, columns, 5);
    quantized_rows x;
    x.resize(11, columns);
    for (std::size_t m = 0; m < 11; ++m) {
      x.quantize(m, values.data() + m * columns, kernels_for(kind));
    }
    for (std::size_t m = 0; m < 11; ++m) {
      for (std::size_t b = 0; b < 3; ++b) {
        const block_slot slot = x.slot(m, b);
        const float* block = values.data() + m * columns + b * 32;
        float amax = 0;
        int sum = 0;
        int pairs[4] = {};
        for (int i = 0; i < 32; ++i) {
          amax = std::max(amax, std::fabs(block[i]));
          REQUIRE(std::abs(slot.codes[i]) <= 127);
          REQUIRE(std::fabs(block[i] - *slot.scale * static_cast<float>(slot.codes[i])) <=
                  0.501F * *slot.scale);
          sum += slot.codes[i];
          pairs[i / 16 * 2 + i % 4 / 2] += slot.codes[i];
        }
        REQUIRE(*slot.scale == Catch::Approx(amax / 127));
        REQUIRE(*slot.sum == Catch::Approx(*slot.scale * static_cast<float>(sum)));
        for (int i = 0; i < 4; ++i) REQUIRE(slot.pairs[i] == -pairs[i]);
      }
    }
  }
}

TEST_CASE("a hand-computed block of activations") {
  for (const isa kind : available_isas()) {
    INFO(to_string(kind));
    float values[32] = {};
    values[0] = 254.0F;   // the largest: code 127, scale 2
    values[1] = -254.0F;  // -127
    values[2] = 5.0F;     // 2.5 rounds to even: 2
    values[19] = -3.9F;   // -1.95: -2
    quantized_rows x;
    x.resize(1, 32);
    x.quantize(0, values, kernels_for(kind));
    const block_slot slot = x.slot(0, 0);
    CHECK(*slot.scale == 2.0F);
    CHECK(int{slot.codes[0]} == 127);
    CHECK(int{slot.codes[1]} == -127);
    CHECK(int{slot.codes[2]} == 2);
    CHECK(int{slot.codes[19]} == -2);
    CHECK(*slot.sum == 0.0F);
    CHECK(slot.pairs[0] == 0);
    CHECK(slot.pairs[1] == -2);
    CHECK(slot.pairs[2] == 0);
    CHECK(slot.pairs[3] == 2);
  }
}

TEST_CASE("a second term leaves a 254th of the first one's error") {
  for (const isa kind : available_isas()) {
    INFO(to_string(kind));
    constexpr std::size_t columns = 90;  // the last block is not whole
    const auto values = make_random_rows(7, columns, 8);
    // An order that reverses the columns, its padding first.
    std::vector<std::int32_t> order(96, -1);
    for (std::size_t i = 6; i < 96; ++i) order[i] = static_cast<std::int32_t>(95 - i);
    quantized_rows plain;
    quantized_rows ordered;
    plain.resize(7, columns, 2);
    ordered.resize(7, 96, 2);
    for (std::size_t m = 0; m < 7; ++m) {
      plain.quantize(m, values.data() + m * columns, kernels_for(kind));
      ordered.quantize_ordered(m, values.data() + m * columns, order, kernels_for(kind));
    }
    const auto error_of = [&](quantized_rows& x, std::size_t m, std::size_t at, double value) {
      double sum = 0;
      for (std::size_t term = 0; term < 2; ++term) {
        const block_slot slot = x.slot(m, at / 32, term);
        sum += double{*slot.scale} * slot.codes[at % 32];
      }
      return std::fabs(sum - value) / *x.slot(m, at / 32).scale;
    };
    for (std::size_t m = 0; m < 7; ++m) {
      for (std::size_t i = 0; i < columns; ++i) {
        const double value = values[m * columns + i];
        // Half a scale over 254, and what floats of up to 127 scales lose.
        REQUIRE(error_of(plain, m, i, value) <= 0.502 / 254 + 127 * 0x1p-23);
        REQUIRE(error_of(ordered, m, 95 - i, value) <= 0.502 / 254 + 127 * 0x1p-23);
      }
    }
  }
}

TEST_CASE("a row's codes are the same in any company") {
  for (const isa kind : available_isas()) {
    constexpr std::size_t columns = 70;
    const auto values = make_random_rows(9, columns, 6);
    quantized_rows all;
    all.resize(9, columns);
    for (std::size_t m = 0; m < 9; ++m) {
      all.quantize(m, values.data() + m * columns, kernels_for(kind));
    }
    for (std::size_t m = 0; m < 9; ++m) {
      quantized_rows one;
      one.resize(1, columns);
      one.quantize(0, values.data() + m * columns, kernels_for(kind));
      for (std::size_t b = 0; b < 3; ++b) {
        const block_slot a = all.slot(m, b);
        const block_slot c = one.slot(0, b);
        REQUIRE(std::memcmp(a.codes, c.codes, 32) == 0);
        REQUIRE(std::memcmp(a.pairs, c.pairs, 8) == 0);
        REQUIRE(*a.scale == *c.scale);
        REQUIRE(*a.sum == *c.sum);
      }
      // 70 = 2 x 32 + 6: the rest of the last block is padding.
      for (int i = 6; i < 32; ++i) REQUIRE(int{one.slot(0, 2).codes[i]} == 0);
    }
  }
}

TEST_CASE("zeros, vanishing values and values that are not finite") {
  for (const isa kind : available_isas()) {
    INFO(to_string(kind));
    quantized_rows x;
    x.resize(1, 128);
    std::vector<float> values(128, 0.0F);
    values[40] = 1e-38F;
    values[64] = std::numeric_limits<float>::infinity();
    values[100] = std::nanf("");
    x.quantize(0, values.data(), kernels_for(kind));
    CHECK(*x.slot(0, 0).scale == 0.0F);
    CHECK(*x.slot(0, 1).scale == 0.0F);
    CHECK(int{x.slot(0, 1).codes[8]} == 0);
    CHECK(std::isnan(*x.slot(0, 2).scale));
    CHECK(std::isnan(*x.slot(0, 3).scale));
    CHECK(int{x.slot(0, 2).codes[0]} == 0);
  }
}
