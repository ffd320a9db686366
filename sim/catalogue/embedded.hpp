// The catalogue's data files, compiled into the program so that it works from
// anywhere. The build generates the definition from the folder sim/data.
#pragma once

#include <span>
#include <string_view>

namespace octavo::sim {

struct embedded_file {
  /// Relative to sim/data: "gpus/h100.json".
  std::string_view path;
  std::string_view text;
};

/// All data files, sorted by path.
[[nodiscard]] std::span<const embedded_file> embedded_files();

}  // namespace octavo::sim
