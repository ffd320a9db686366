// One place that turns options into a cost model: constant, measured profile or
// roofline, in that order of precedence.
#pragma once

#include <memory>
#include <string>

#include "model/config.hpp"
#include "model/formats.hpp"
#include "sim/catalogue/gpu.hpp"
#include "sim/cost/cost_model.hpp"

namespace octavo::sim {

struct cost_options {
  model::model_config config;
  gpu_spec gpu;
  int tp = 1;
  model::weight_format weights = model::weight_format::fp16;
  model::kv_dtype kv = model::kv_dtype::fp16;
  /// An `octavo.profile/1` file; empty = none.
  std::string profile_path{};
  /// Device time of every step, microseconds; 0 = priced by profile or roofline.
  double step_time_us = 0;
  /// Host time that is added to each step and, per sequence, to its planning. It
  /// is not modelled unless given: engines differ by an order of magnitude.
  double host_step_us = 0;
  double host_sequence_us = 0;
};

/// The cost model that the options ask for. Throws infeasible_error where tp
/// does not divide the model, and input_error where a profile cannot be used or
/// was measured for another model, number format or tp.
[[nodiscard]] std::unique_ptr<cost_model> make_cost_model(const cost_options& options);

}  // namespace octavo::sim
