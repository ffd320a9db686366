// The one place that reads a clock of the machine.
#include "actors/wall_clock.hpp"

#include <chrono>

namespace octavo::actors {

double wall_seconds() {
  const auto since_boot = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since_boot).count();
}

}  // namespace octavo::actors
