// `sim`: what the program does with its flags.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace octavo::sim {

/// Runs the command. `arguments` are without the program's name. Returns the
/// exit code: 0 good, 1 a log that does not verify or an unexpected problem, 2 bad
/// input, 3 infeasible.
int sim_command(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace octavo::sim
