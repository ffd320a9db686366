// One run from prepared configuration to summary.
#pragma once

#include <ostream>

#include "sim/cli/options.hpp"
#include "sim/cli/prepare.hpp"
#include "sim/report/summary.hpp"

namespace octavo::sim {

/// A finished run.
struct finished_run {
  simulation_outcome outcome;
  run_summary summary;
  double wall_s = 0;
};

/// Runs a prepared configuration; it may be called from several threads at once.
[[nodiscard]] finished_run execute_run(prepared_run& run);

/// The whole of a single run as the command line asks for it: progress on a
/// terminal, report, files.
int run_once(const sim_options& options, std::ostream& out, std::ostream& err);

}  // namespace octavo::sim
