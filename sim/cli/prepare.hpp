// From flags to a world: model and GPU looked up, memory divided, blocks
// counted, engine configured, cost model chosen.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/cli/options.hpp"
#include "sim/cost/cost_source.hpp"
#include "sim/world/simulation.hpp"

namespace octavo::sim {

/// What the clients expect.
struct service_objectives {
  double ttft_us = 0;  ///< 0: none
  double tpot_us = 0;  ///< 0: none
  double percentile = 99;

  [[nodiscard]] bool any() const { return ttft_us > 0 || tpot_us > 0; }
};

/// One configuration, ready to run.
struct prepared_run {
  simulation_options simulation;
  service_objectives objectives;
  std::string model_name;
  std::string gpu_name;
  int gpus = 1;
  double price_usd_per_hour = 0;  ///< of all GPUs
  std::int64_t seed = 0;
  std::string assume_max_tokens;
  /// Requests longer than max-model-len are longer than the model takes, not just
  /// longer than memory holds.
  bool length_is_the_models = false;
  /// How the KV blocks came about, to print.
  std::string memory_arithmetic;
  /// What the reader should know: assumptions, oracles, fitted lengths.
  std::vector<std::string> notes;
};

/// Resolves flags for a trace that is already read. Throws input_error for what
/// cannot be used, infeasible_error with the arithmetic for what cannot work.
[[nodiscard]] prepared_run prepare_run(const sim_options& options,
                                       std::shared_ptr<const traces::trace> trace);

}  // namespace octavo::sim
