// The folder table as a rule about #include lines.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "tests/tidy/rules.hpp"

namespace octavo::tidy {
namespace {

using names = std::set<std::string, std::less<>>;

/// Which folders a folder may include besides itself. Folders that are not
/// keys (tests, bench, programs) may include all.
const std::map<std::string, names, std::less<>>& folder_table() {
  static const std::map<std::string, names, std::less<>> table{
      {"core", {}},
      {"actors", {"core"}},
      {"model", {"core"}},
      {"cpu", {"core", "model"}},
      {"gpu", {"core", "model"}},
      {"sim", {"core", "actors", "model", "traces"}},
      {"traces", {"core"}},
      {"web", {"core", "actors", "model", "traces"}},
  };
  return table;
}

bool is_project_folder(std::string_view name) {
  return folder_table().contains(name) || name == "tests" || name == "bench" || name == "programs";
}

std::string joined(const names& list) {
  std::string text;
  for (const auto& name : list) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "nothing else" : text;
}

/// A library that only some folders may use, and the folders.
struct confined_library {
  std::string name;
  std::vector<std::string> prefixes;
  names folders;
};

const std::vector<confined_library>& confined_libraries() {
  static const std::vector<confined_library> libraries{
      {"CAF", {"caf/"}, {"actors", "sim", "web", "tests", "bench", "programs"}},
      {"Asio", {"asio.hpp", "asio/"}, {"web", "tests", "bench", "programs"}},
      {"CUDA",
       {"cuda", "cublas", "curand", "nccl", "cub/", "thrust/", "cutlass/", "cute/", "nvtx3/",
        "cooperative_groups", "mma.h", "driver_types.h"},
       {"gpu"}},
      {"Catch2 (but through tests/support/catch.hpp)", {"catch2/"}, {"tests"}},
  };
  return libraries;
}

bool is_standard_header(std::string_view target) {
  return !target.empty() &&
         target.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
}

/// Standard headers that bring threads, a source of time, or IO.
const names& impure_headers() {
  static const names headers{"thread",    "mutex",     "shared_mutex", "condition_variable",
                             "future",    "semaphore", "latch",        "barrier",
                             "chrono",    "ctime",     "iostream",     "fstream",
                             "ostream",   "istream",   "filesystem",   "stop_token",
                             "syncstream"};
  return headers;
}

std::string core_objection(const std::string& target, bool is_test) {
  if (!is_standard_header(target)) {
    return "core includes the standard library only, not <" + target + ">";
  }
  if (!is_test && impure_headers().contains(target)) {
    return "core does without threads, time and IO, so without <" + target + ">";
  }
  return {};
}

std::string library_objection(const std::string& folder, const std::string& target) {
  for (const auto& library : confined_libraries()) {
    const bool matches =
        std::any_of(library.prefixes.begin(), library.prefixes.end(),
                    [&](const std::string& prefix) { return target.starts_with(prefix); });
    if (matches && !library.folders.contains(folder)) {
      return "<" + target + ">: " + library.name + " may be used in " + joined(library.folders);
    }
  }
  return {};
}

std::string folder_objection(const source_file& file, const std::string& folder,
                             const std::string& target_folder) {
  const auto row = folder_table().find(folder);
  if (row == folder_table().end() || target_folder == folder) return {};
  if (target_folder == "tests" && is_test(file.path)) return {};
  if (row->second.contains(target_folder)) return {};
  return folder + "/ may not include " + target_folder +
         "/; allowed besides itself: " + joined(row->second);
}

std::string objection(const source_file& file, const std::string& target) {
  const std::string folder = folder_of(file.path);
  const std::string target_folder = folder_of(target);
  if (is_project_folder(target_folder)) return folder_objection(file, folder, target_folder);
  if (target.starts_with("..") || target.starts_with("./")) {
    return "\"" + target + "\" is relative; include from the root, as \"core/units.hpp\"";
  }
  if (folder == "core") return core_objection(target, is_test(file.path));
  return library_objection(folder, target);
}

}  // namespace

std::vector<violation> check_includes(const source_file& file) {
  std::vector<violation> found;
  for (const auto& include : file.includes) {
    const auto message = objection(file, include.target);
    if (!message.empty()) found.push_back({file.path, include.line, message});
  }
  return found;
}

}  // namespace octavo::tidy
