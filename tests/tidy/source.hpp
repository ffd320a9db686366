// A file of the tree as the tidy rules see it: its text, its includes, and its
// code with everything blanked that is not code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octavo::tidy {

/// One `#include`, with the line it stands on (from 1).
struct include_line {
  int line = 0;
  std::string target;
};

/// A file, by its path from the root of the tree ('/' between folders).
struct source_file {
  std::string path;
  std::string text;
  /// `text` of the same length and lines, with comments, preprocessor lines and
  /// what is inside literals replaced by spaces. Empty unless the file is C++.
  std::string code;
  std::vector<include_line> includes;
};

/// A broken rule: where, and what is allowed instead.
struct violation {
  std::string path;
  int line = 0;
  std::string message;
};

/// "path:line: message", as compilers write it.
[[nodiscard]] std::string to_string(const violation& broken);

/// True for C++ and CUDA sources and headers.
[[nodiscard]] bool is_cpp(std::string_view path);

/// True for what people write: C++, CMake, shell, web sources.
[[nodiscard]] bool is_written(std::string_view path);

[[nodiscard]] bool is_header(std::string_view path);
/// True for x.test.cpp and everything below tests/.
[[nodiscard]] bool is_test(std::string_view path);

/// The first folder of a path; empty for a file at the root.
[[nodiscard]] std::string folder_of(std::string_view path);

/// Parses a text as the file `path`.
[[nodiscard]] source_file make_source(std::string path, std::string text);

/// Every text file below `root`, in order of path, without build folders,
/// hidden folders (but .ci) and installed packages.
[[nodiscard]] std::vector<source_file> read_tree(const std::string& root);

/// Lines without their ends.
[[nodiscard]] std::vector<std::string_view> lines_of(std::string_view text);

/// The line (from 1) on which position `at` lies.
[[nodiscard]] int line_at(std::string_view text, std::size_t at);

}  // namespace octavo::tidy
