// The first lesson: the same requests under several policies, drawn against
// time, every decision explained, and what it came to in the end.
#pragma once

#include <iosfwd>
#include <vector>

#include "core/config.hpp"
#include "sim/world/simulation.hpp"

namespace octavo::sim {

struct timeline_options {
  /// The first is what the others are compared with.
  std::vector<policy_kind> policies{policy_kind::static_batch, policy_kind::continuous};
  /// Width of the terminal. Pictures stand side by side where they fit.
  std::size_t columns = 100;
  bool utf8 = true;
  bool colour = false;
  /// Tell each step's decisions in words.
  bool decisions = true;
  /// More than this cannot be read.
  std::size_t requests_max = 24;
  std::size_t steps_max = 400;
};

/// Runs `base` once under each policy (its own policy, logs and observers are
/// left out) and prints the lesson. Throws input_error for a run that is too
/// large to be read, or has more than one replica, and says what to do.
void print_timeline(const simulation_options& base, const timeline_options& options,
                    std::ostream& out);

}  // namespace octavo::sim
