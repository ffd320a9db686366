// One answer to one question about one configuration: a plain run, the highest
// rate it can take, or the fewest replicas that do.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "sim/cli/options.hpp"
#include "sim/cli/prepare.hpp"
#include "sim/report/summary.hpp"

namespace octavo::sim {

/// What came of a configuration.
struct evaluation {
  /// Absent where the configuration is infeasible; `problem` says why.
  std::optional<prepared_run> run;
  run_summary summary;
  std::string problem;
  /// Of --find-capacity: the highest rate scale that meets the objectives and the
  /// requests per second that are served at it; 0 where none does.
  double capacity_scale = 0;
  double capacity_rps = 0;
  /// Where the search ended because the trace cannot load the fleet any more,
  /// rather than at a failure.
  bool capacity_is_bound = false;
  /// Simulations that it took.
  int runs = 0;
};

/// Runs `options` as asked (find_capacity, find_min_gpus or plain). Infeasible
/// configurations are an answer, not an error; bad input throws input_error.
/// Thread-compatible: runs of different options may go on at once.
[[nodiscard]] evaluation evaluate(const sim_options& options,
                                  const std::shared_ptr<const traces::trace>& trace);

/// Requests per second of the trace as it is.
[[nodiscard]] double traced_rate(const traces::trace& trace, std::uint32_t requests);

}  // namespace octavo::sim
