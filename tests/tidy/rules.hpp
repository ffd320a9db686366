// The rules of the source tree. Each takes one file and reports what breaks it.
#pragma once

#include <string>
#include <vector>

#include "tests/tidy/source.hpp"

namespace octavo::tidy {

/// A folder includes only what the folder table allows; core only the standard
/// library without threads, time and IO; CAF, Asio and CUDA stay where they belong.
[[nodiscard]] std::vector<violation> check_includes(const source_file& file);

/// What time it is, is asked in one file; benchmarks and system tests may ask too.
[[nodiscard]] std::vector<violation> check_clock(const source_file& file);

/// UTF-8, LF, a newline at the end.
[[nodiscard]] std::vector<violation> check_encoding(const source_file& file);

/// C++ opens with a comment; headers say #pragma once; lines have a limit.
[[nodiscard]] std::vector<violation> check_form(const source_file& file);

/// No unfinished business, and no path that exists on one machine only.
[[nodiscard]] std::vector<violation> check_words(const source_file& file);

/// A function, by the line where its declaration begins and its length in lines.
struct function_extent {
  std::string name;
  int line = 0;
  int length = 0;
};

/// The functions defined at namespace or class level, in order. Relies on the
/// layout that clang-format gives: bodies open with " {", initializers with "{".
[[nodiscard]] std::vector<function_extent> functions_of(const source_file& file);

/// A length above the rule that is tolerated, and may only shrink. An empty
/// function name means the whole file.
struct exception {
  std::string path;
  std::string function;
  int lines = 0;
};

/// Files and functions have a limit, except for those listed at theirs. A
/// listed limit that is looser than needed, or names nothing, is reported too.
[[nodiscard]] std::vector<violation> check_lengths(const source_file& file,
                                                   const std::vector<exception>& exceptions);

}  // namespace octavo::tidy
