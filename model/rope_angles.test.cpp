// Rotary angles against published values and the closed forms in double.
#include "model/rope_angles.hpp"

#include <cmath>

#include "core/error.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

namespace {

model_config config_of(double theta, std::int64_t head_dim) {
  model_config config;
  config.head_dim = head_dim;
  config.max_positions = 131'072;
  config.rope.theta = theta;
  return config;
}

struct angles {
  std::vector<float> cosines, sines;
};

angles angles_at(const model_config& config, std::int64_t position, bool local = false) {
  const rope_angles rope{config, local};
  angles out{std::vector<float>(rope.dimensions() / 2), std::vector<float>(rope.dimensions() / 2)};
  rope.at(position, out.cosines, out.sines);
  return out;
}

/// The angles at position 1: a pair's frequency.
std::vector<double> frequencies(const model_config& config, bool local = false) {
  const angles one = angles_at(config, 1, local);
  std::vector<double> out;
  for (std::size_t i = 0; i < one.sines.size(); ++i) {
    out.push_back(std::atan2(one.sines[i], one.cosines[i]));
  }
  return out;
}

}  // namespace

TEST_CASE("plain rotation: theta to the power of -2i/d, times the position") {
  const auto config = config_of(10'000, 8);
  // 10000^(-2i/8) = 1, 0.1, 0.01, 0.001.
  const angles at = angles_at(config, 1000);
  const double turns[] = {1000, 100, 10, 1};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK_THAT(at.cosines[i], WithinAbs(std::cos(turns[i]), 1e-6));
    CHECK_THAT(at.sines[i], WithinAbs(std::sin(turns[i]), 1e-6));
  }
  CHECK(angles_at(config, 0).cosines == std::vector<float>(4, 1.0F));
  CHECK(angles_at(config, 0).sines == std::vector<float>(4, 0.0F));
}

TEST_CASE("rotation of a part of the head uses that part's width") {
  auto config = config_of(10'000, 32);
  config.rope.dimensions = 8;
  CHECK(rope_angles(config, false).dimensions() == 8);
  CHECK_THAT(frequencies(config)[1], WithinRel(0.1, 1e-6));
}

TEST_CASE("linear scaling divides every frequency") {
  auto config = config_of(10'000, 8);
  config.rope.scaling = rope_scaling::linear;
  config.rope.factor = 4;
  const auto f = frequencies(config);
  const double expected[] = {0.25, 0.025, 0.0025, 0.00025};
  for (std::size_t i = 0; i < 4; ++i) CHECK_THAT(f[i], WithinRel(expected[i], 1e-6));
}

TEST_CASE("Llama 3.1's frequencies are divided as its GGUF files say") {
  auto config = config_of(500'000, 128);
  config.rope.scaling = rope_scaling::llama3;
  config.rope.factor = 8;
  config.rope.low_frequency_factor = 1;
  config.rope.high_frequency_factor = 4;
  config.rope.original_positions = 8192;
  const auto f = frequencies(config);
  // The tensor rope_freqs of Meta-Llama-3.1-8B.
  const auto divisor = [](std::size_t i) {
    switch (i) {
      case 29:
        return 1.207484;
      case 30:
        return 1.553415;
      case 32:
        return 2.694530;
      case 34:
        return 5.257327;
      default:
        return i <= 28 ? 1.0 : 8.0;
    }
  };
  for (std::size_t i = 0; i < 64; ++i) {
    if (i == 31 || i == 33) continue;
    CAPTURE(i);
    const double plain = std::pow(500'000.0, -static_cast<double>(i) / 64);
    CHECK_THAT(f[i], WithinRel(plain / divisor(i), 2e-6));
  }
}

TEST_CASE("yarn keeps short waves, divides long ones, and raises the magnitude") {
  auto config = config_of(1e6, 128);
  config.rope.scaling = rope_scaling::yarn;
  config.rope.factor = 4;
  config.rope.original_positions = 32'768;
  const auto f = frequencies(config);
  // Qwen2.5's setting: the ramp goes from pair 23 to 40.
  for (const std::size_t i : {0U, 10U, 23U}) {
    CHECK_THAT(f[i], WithinRel(std::pow(1e6, -static_cast<double>(i) / 64), 1e-6));
  }
  CHECK_THAT(f[30], WithinRel(1.064361e-3, 1e-6));
  CHECK_THAT(f[40], WithinRel(4.445699e-5, 1e-6));
  CHECK_THAT(f[63], WithinRel(std::pow(1e6, -63.0 / 64) / 4, 1e-6));
  // 0.1 ln 4 + 1.
  CHECK_THAT(angles_at(config, 0).cosines[5], WithinRel(1.138629, 1e-6));
  config.rope.attention_factor = 1.5;
  CHECK(angles_at(config, 0).cosines[5] == 1.5F);
}

TEST_CASE("yarn's ramp may end between pairs") {
  auto config = config_of(1e6, 128);
  config.rope.scaling = rope_scaling::yarn;
  config.rope.factor = 4;
  config.rope.original_positions = 32'768;
  config.rope.truncate = false;
  // From 23.596 to 39.651: pair 30 is at (30 - 23.596) / 16.055 of it.
  const double ramp = (30 - 23.596) / (39.651 - 23.596);
  const double expected = 1.539927e-3 * (ramp / 4 + 1 - ramp);
  CHECK_THAT(frequencies(config)[30], WithinRel(expected, 1e-4));
}

TEST_CASE("layers that slide have a base of their own, which is not scaled") {
  auto config = config_of(1e6, 8);
  config.rope.local_theta = 10'000;
  config.rope.scaling = rope_scaling::linear;
  config.rope.factor = 8;
  CHECK_THAT(frequencies(config, true)[2], WithinRel(0.01, 1e-6));
  CHECK_THAT(frequencies(config, false)[2], WithinRel(0.001 / 8, 1e-6));
}

TEST_CASE("divisors of the weights file divide frequencies once more") {
  auto config = config_of(10'000, 8);
  config.rope.divisors = {1, 2, 4, 8};
  const auto f = frequencies(config);
  const double expected[] = {1, 0.05, 0.0025, 0.000125};
  for (std::size_t i = 0; i < 4; ++i) CHECK_THAT(f[i], WithinRel(expected[i], 1e-6));
}

TEST_CASE("an unknown scaling is refused by name") {
  auto config = config_of(10'000, 8);
  config.rope.scaling = rope_scaling::other;
  config.rope.scaling_name = "dynamic";
  CHECK_THROWS_AS(rope_angles(config, false), infeasible_error);
  CHECK_THROWS_WITH(rope_angles(config, false), Catch::Matchers::ContainsSubstring("'dynamic'"));
}
