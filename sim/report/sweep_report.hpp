// A sweep's rows for a person and as files.
#pragma once

#include <ostream>
#include <vector>

#include "sim/sweep/sweep.hpp"

namespace octavo::sim {

/// The answer in one sentence, then one line a configuration.
void print_sweep(const sim_options& options, const std::vector<sweep_row>& rows, double wall_s,
                 std::ostream& out);

/// --out-csv and --out-json: one row a configuration.
void write_sweep_files(const sim_options& options, const std::vector<sweep_row>& rows);

}  // namespace octavo::sim
