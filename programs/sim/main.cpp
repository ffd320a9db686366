// `sim`, the capacity planner: see sim/cli.
#include <iostream>
#include <string>
#include <vector>

#include "sim/cli/command.hpp"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments == std::vector<std::string>{"--version"}) {
    std::cout << "sim of octavo " OCTAVO_VERSION "\n";
    return 0;
  }
  return octavo::sim::sim_command(arguments, std::cout, std::cerr);
}
