// `octavo bench`: how fast a model runs on this machine, through the same actors
// that serve it.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace octavo {

/// Runs the command. `arguments` are those behind "bench". Returns the exit code:
/// 0, 1 where a request failed, 2 bad input, 3 infeasible.
int bench_command(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace octavo
