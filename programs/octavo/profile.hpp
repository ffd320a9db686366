// `octavo profile`: measured prices for `sim --profile`.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace octavo {

/// Runs `octavo profile measure`; other subcommands go to sim/cost/convert.hpp.
/// `arguments` are those behind "profile". Returns the exit code: 0, 2 bad input, 3
/// infeasible.
int profile_command(const std::vector<std::string>& arguments, std::ostream& out,
                    std::ostream& err);

}  // namespace octavo
