// Wall time, for what a person waits for: progress bars and the time a run took.
// No decision and no simulated moment depends on it.
#pragma once

namespace octavo::actors {

/// Seconds of a monotonic clock; only differences mean something.
[[nodiscard]] double wall_seconds();

}  // namespace octavo::actors
