// Chooses the source of prices.
#include "sim/cost/cost_source.hpp"

#include "core/error.hpp"
#include "sim/cost/constant.hpp"
#include "sim/cost/profile.hpp"
#include "sim/cost/roofline.hpp"

namespace octavo::sim {
namespace {

/// A profile prices only what it was measured for.
void check_profile(const profile& measured, const cost_options& options) {
  const auto refuse = [&](const std::string& what, auto found, auto wanted) {
    using model::to_string;
    using std::to_string;
    throw input_error(options.profile_path + ": measured with " + what + " " + to_string(found) +
                      ", but the run has " + to_string(wanted));
  };
  const auto differs = [&](const std::string& what, const std::string& found,
                           const std::string& wanted) {
    if (found.empty() || wanted.empty() || found == wanted || found.starts_with("unnamed")) return;
    throw input_error(options.profile_path + ": measured on " + what + " " + found +
                      ", but the run has " + wanted);
  };
  differs("the GPU", measured.gpu, options.gpu.name);
  if (measured.layers != options.config.layers) {
    refuse("layers", measured.layers, options.config.layers);
  }
  if (measured.hidden_size != options.config.hidden_size) {
    refuse("hidden size", measured.hidden_size, options.config.hidden_size);
  }
  if (measured.weights != options.weights) refuse("weights", measured.weights, options.weights);
  if (measured.kv != options.kv) refuse("KV", measured.kv, options.kv);
  if (measured.tp != options.tp) refuse("tensor parallel size", measured.tp, options.tp);
}

}  // namespace

std::unique_ptr<cost_model> make_cost_model(const cost_options& options) {
  model::check_tensor_parallel(options.config, options.tp);
  if (options.step_time_us > 0) return std::make_unique<constant_cost>(options.step_time_us);
  if (!options.profile_path.empty()) {
    profile measured = read_profile(options.profile_path);
    check_profile(measured, options);
    if (options.host_step_us > 0 || options.host_sequence_us > 0) {
      measured.host_step_us = options.host_step_us;
      measured.host_sequence_us = options.host_sequence_us;
    }
    return std::make_unique<profile_cost>(std::move(measured));
  }
  return std::make_unique<roofline_cost>(
      roofline_setup{.config = options.config,
                     .gpu = options.gpu,
                     .tp = options.tp,
                     .weights = options.weights,
                     .kv = options.kv,
                     .host_step_us = options.host_step_us,
                     .host_sequence_us = options.host_sequence_us});
}

}  // namespace octavo::sim
