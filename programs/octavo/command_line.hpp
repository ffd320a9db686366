// What the commands of `octavo` have in common: how their flags are parsed, and how
// their errors become messages and exit codes.
#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <CLI/App.hpp>

namespace octavo {

/// Parses flags. Returns the help where it was asked for, to print instead of running.
/// Throws input_error that says what is wrong and names the command that lists the flags.
[[nodiscard]] std::optional<std::string> parse_flags(CLI::App& app,
                                                     const std::vector<std::string>& arguments);

/// Runs `work` and returns its exit code; after an input_error 2, after an
/// infeasible_error 3, after what else fails 1, with a message on `err`.
int run_command(std::ostream& err, const std::function<int()>& work);

}  // namespace octavo
