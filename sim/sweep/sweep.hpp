// --vary: every combination of the given values, as one table with the Pareto
// set marked. Runs are independent: --jobs runs several at once, --shard k/n
// takes every n-th for one of n machines. The order of rows, and every byte of
// them, depends on neither.
#pragma once

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "sim/cli/options.hpp"
#include "sim/sweep/evaluate.hpp"

namespace octavo::sim {

/// One combination.
struct variation {
  /// Its number in the whole grid, from 0.
  std::size_t number = 0;
  /// Flag without dashes, and value.
  std::vector<std::pair<std::string, std::string>> values;
};

struct sweep_row {
  variation what;
  evaluation result;
  /// No other row that meets the objectives is both cheaper and faster.
  bool pareto = false;
};

/// The grid of --vary, restricted to --shard. Throws input_error for a malformed
/// KEY=V1,V2, an unknown key, or a grid of more than 100,000.
[[nodiscard]] std::vector<variation> expand_grid(const sim_options& options);

/// "rate-scale 2, policy reserve": a combination for a person.
[[nodiscard]] std::string label_of(const variation& what);

/// The options of one combination.
[[nodiscard]] sim_options options_of(const sim_options& base, const variation& what);

/// Marks the rows that nobody beats in both cost per token and p99 TTFT.
void mark_pareto(std::vector<sweep_row>& rows);

/// Runs the grid and reports as the options ask. Returns the exit code: 0, or 3
/// where not one configuration is feasible.
int run_sweep(const sim_options& options, std::ostream& out, std::ostream& err);

}  // namespace octavo::sim
