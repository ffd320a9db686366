// What the commands have in common: see command_line.hpp.
#include "programs/octavo/command_line.hpp"

#include <exception>

#include <CLI/CLI.hpp>

#include "core/error.hpp"

namespace octavo {

std::optional<std::string> parse_flags(CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    return app.help();
  } catch (const CLI::ParseError& problem) {
    throw input_error(std::string{problem.what()} + "\n" + app.get_name() +
                      " --help lists the flags.");
  }
  return std::nullopt;
}

int run_command(std::ostream& err, const std::function<int()>& work) {
  try {
    return work();
  } catch (const input_error& problem) {
    err << "octavo: " << problem.what() << '\n';
    return 2;
  } catch (const infeasible_error& problem) {
    err << "octavo: infeasible: " << problem.what() << '\n';
    return 3;
  } catch (const std::exception& problem) {
    // A device that fails, a disk that is full.
    err << "octavo: " << problem.what() << '\n';
    return 1;
  }
}

}  // namespace octavo
