// The simplest price: every step takes the same time (`--step-time 50ms`), for
// tests and for reasoning by hand.
#pragma once

#include <string>

#include "sim/cost/cost_model.hpp"

namespace octavo::sim {

class constant_cost final : public cost_model {
 public:
  /// `step_us`: device time of every step that holds work, microseconds.
  explicit constant_cost(double step_us) : step_us_(step_us) {}

  [[nodiscard]] double device_time_us(const step_shape& shape) const override {
    return shape.tokens() == 0 ? 0 : step_us_;
  }
  [[nodiscard]] double host_time_us(const step_shape&) const override { return 0; }
  [[nodiscard]] std::string source() const override;

 private:
  double step_us_;
};

/// Reads "50ms", "1.5s", "800us" into microseconds. Throws input_error for
/// anything else, naming what is allowed.
[[nodiscard]] double parse_step_time_us(const std::string& text);

}  // namespace octavo::sim
