// Reads the tree and says what kind of file each one is.
#include "tests/tidy/source.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace octavo::tidy {
namespace {

namespace fs = std::filesystem;
using namespace std::string_view_literals;

template <std::size_t N>
bool ends_with_any(std::string_view path, const std::array<std::string_view, N>& endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return path.ends_with(ending); });
}

bool is_text(std::string_view path) {
  constexpr std::array endings{".md"sv,  ".json"sv,   ".jsonl"sv,     ".csv"sv,         ".supp"sv,
                               ".yml"sv, "LICENSE"sv, ".gitignore"sv, ".clang-format"sv};
  return is_written(path) || ends_with_any(path, endings);
}

bool is_skipped_folder(const std::string& name) {
  return name == "build" || name.starts_with("build-") || name == "node_modules" ||
         (name.starts_with('.') && name != ".ci");
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

std::string to_string(const violation& broken) {
  return broken.path + ":" + std::to_string(broken.line) + ": " + broken.message;
}

bool is_cpp(std::string_view path) {
  constexpr std::array endings{".cpp"sv, ".hpp"sv, ".h"sv, ".cu"sv, ".cuh"sv};
  return ends_with_any(path, endings);
}

bool is_written(std::string_view path) {
  constexpr std::array endings{".cmake"sv, "CMakeLists.txt"sv, ".sh"sv,  ".py"sv,
                               ".ts"sv,    ".tsx"sv,           ".css"sv, ".html"sv};
  return is_cpp(path) || path == "dev" || path == ".ci/run" || ends_with_any(path, endings);
}

bool is_header(std::string_view path) {
  constexpr std::array endings{".hpp"sv, ".h"sv, ".cuh"sv};
  return ends_with_any(path, endings);
}

bool is_test(std::string_view path) {
  return path.starts_with("tests/") || path.ends_with(".test.cpp");
}

std::string folder_of(std::string_view path) {
  const auto slash = path.find('/');
  return std::string(slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash));
}

std::vector<source_file> read_tree(const std::string& root) {
  std::vector<source_file> files;
  for (auto entry = fs::recursive_directory_iterator(root);
       entry != fs::recursive_directory_iterator(); ++entry) {
    if (entry->is_directory()) {
      if (is_skipped_folder(entry->path().filename().string())) entry.disable_recursion_pending();
      continue;
    }
    auto path = entry->path().lexically_relative(root).generic_string();
    if (is_text(path)) files.push_back(make_source(std::move(path), read_file(entry->path())));
  }
  std::sort(files.begin(), files.end(),
            [](const source_file& a, const source_file& b) { return a.path < b.path; });
  return files;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

int line_at(std::string_view text, std::size_t at) {
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<long>(at), '\n'));
}

}  // namespace octavo::tidy
