// `octavo generate`: one prompt to text on the terminal, through the same actors
// that serve and simulate.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace octavo {

/// Runs the command. `arguments` are those behind "generate". Returns the exit
/// code: 0, 1 where generation failed, 2 bad input, 3 infeasible.
int generate_command(const std::vector<std::string>& arguments, std::ostream& out,
                     std::ostream& err);

}  // namespace octavo
