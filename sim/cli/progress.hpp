// A progress bar with the time left, on a terminal only.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "sim/world/workload_source.hpp"

namespace octavo::sim {

/// A callback that draws to `err`, at most ten times a second; an empty callback
/// where standard error is no terminal. With `what`, as "layers loaded", it also says how many
/// of how many.
[[nodiscard]] progress_callback make_progress_bar(std::ostream& err, const std::string& what = {});

/// Wipes the bar.
void clear_progress_bar(std::ostream& err);

}  // namespace octavo::sim
