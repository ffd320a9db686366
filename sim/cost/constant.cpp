// Constant prices and the reading of step times.
#include "sim/cost/constant.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "core/error.hpp"

namespace octavo::sim {

std::string constant_cost::source() const {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "constant (%g ms a step)", step_us_ / 1e3);
  return text.data();
}

double parse_step_time_us(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const std::string_view unit{rest, static_cast<std::size_t>(end - rest)};
  const double scale = unit == "us" ? 1 : unit == "ms" ? 1e3 : unit == "s" ? 1e6 : 0;
  const bool in_range = std::isfinite(value) && value > 0 && value * scale <= 3600e6;
  if (error != std::errc{} || scale == 0 || !in_range) {
    throw input_error("step time \"" + text +
                      "\": a number with its unit is needed, such as 50ms, 1.5s or 800us, above "
                      "0 and at most an hour");
  }
  return value * scale;
}

}  // namespace octavo::sim
