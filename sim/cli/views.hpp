// The views that teach: a timeline of policies, and one request's life.
#pragma once

#include <ostream>

#include "sim/cli/options.hpp"

namespace octavo::sim {

/// `--timeline`: static and continuous batching of a small trace, drawn.
void show_timeline(const sim_options& options, std::ostream& out);

/// `--explain ID`: what happened to one request. ID is its name in the trace, or
/// its number. Throws input_error where there is none.
void show_explanation(const sim_options& options, std::ostream& out);

}  // namespace octavo::sim
