// For tests: runs of the `sim` command with its output, code and files.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/cli/command.hpp"
#include "traces/temp_file.hpp"

namespace octavo::test {

struct sim_result {
  int code = 0;
  std::string out;
  std::string err;
};

[[nodiscard]] inline sim_result run_sim(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = sim::sim_command(arguments, out, err);
  return {code, out.str(), err.str()};
}

/// Arguments put together.
[[nodiscard]] inline std::vector<std::string> operator+(std::vector<std::string> a,
                                                        const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// The --out-json of a run.
[[nodiscard]] inline nlohmann::json json_of_sim(const std::vector<std::string>& arguments) {
  const traces::temp_file file{"", ".json"};
  const sim_result run =
      run_sim(arguments + std::vector<std::string>{"--quiet", "--out-json", file.path().string()});
  if (run.code != 0) throw std::runtime_error(run.err);
  return nlohmann::json::parse(traces::contents_of(file.path()));
}

}  // namespace octavo::test
