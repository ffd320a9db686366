// Says on standard error how a model's loading goes.
#pragma once

#include <ostream>

#include "sim/world/workload_source.hpp"

namespace octavo {

/// Hears of layers that are loaded. On a terminal it draws a bar that vanishes when all are;
/// elsewhere, where `tells_time`, it writes one line then.
[[nodiscard]] sim::progress_callback show_loading(std::ostream& err, bool tells_time);

}  // namespace octavo
