// The one clock. It reads the actor system's own clock: wall time where actors
// run on threads, virtual time where a simulation drives them. Nothing else in
// the project asks what time it is.
#pragma once

#include <chrono>

#include <caf/actor_clock.hpp>

#include "core/units.hpp"

namespace octavo::actors {

class engine_clock {
 public:
  using time_point = caf::actor_clock::time_point;

  engine_clock() = default;
  /// Counts from `start`.
  explicit engine_clock(time_point start) : start_(start) {}

  [[nodiscard]] micros at(time_point moment) const {
    return micros{std::chrono::duration_cast<std::chrono::microseconds>(moment - start_).count()};
  }

 private:
  time_point start_{};
};

}  // namespace octavo::actors
