// `octavo serve`: a model behind an OpenAI-compatible HTTP API and WebSocket.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace octavo {

/// Runs until SIGTERM or SIGINT: the first drains, the second stops at once. `arguments`
/// are those behind "serve". Returns the exit code: 0, 1 where the engine failed, 2 bad
/// input, 3 infeasible.
int serve_command(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace octavo
