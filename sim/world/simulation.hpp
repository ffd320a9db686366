// One simulated world: the real engine's actors, a simulated executor for each
// replica, a workload source, all on one thread under a virtual clock.
//
//   simulation_options options;
//   options.trace = std::make_shared<traces::trace>(traces::read_trace("prod.csv"));
//   options.engine.num_blocks = block_count{7424};
//   options.cost = make_cost_model(…);
//   simulation_outcome outcome = simulate(options);
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "core/decision_record.hpp"
#include "core/router.hpp"
#include "sim/world/outcome.hpp"
#include "sim/world/workload.hpp"
#include "sim/world/workload_source.hpp"
#include "traces/log_file.hpp"

namespace octavo::sim {

struct simulation_options {
  std::shared_ptr<const traces::trace> trace;
  engine_config engine;
  std::shared_ptr<const cost_model> cost;
  workload_options work;
  std::uint32_t replicas = 1;
  router_kind router = router_kind::round_robin;
  /// Keep the hash over all decisions.
  bool decision_log = true;
  /// Write the decisions too; may be null.
  traces::log_file_writer* log_file = nullptr;
  /// Hear replica 0's records.
  std::vector<decision_observer*> observers;
  /// Asked once for each replica: who hears that replica's records, or null.
  std::function<decision_observer*(std::uint32_t replica)> observe;
  progress_callback progress;
};

/// Runs to the end. Throws input_error for options that cannot be used; the
/// outcome is the same, bit for bit, on every run.
[[nodiscard]] simulation_outcome simulate(const simulation_options& options);

}  // namespace octavo::sim
