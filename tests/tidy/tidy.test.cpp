// Holds the source tree to its rules; each failure names the file, the line and
// what is allowed.
#include <functional>

#include "tests/support/catch.hpp"
#include "tests/tidy/rules.hpp"

using namespace octavo::tidy;

namespace {

/// Lengths above the rule that are tolerated. Entries may shrink or go; to add
/// one is to say why in the line above it.
const std::vector<exception> known_lengths{};

const std::vector<source_file>& tree() {
  static const auto files = read_tree(OCTAVO_SOURCE_DIR);
  return files;
}

void hold(const std::function<std::vector<violation>(const source_file&)>& rule) {
  for (const auto& file : tree()) {
    for (const auto& broken : rule(file)) FAIL_CHECK(to_string(broken));
  }
}

}  // namespace

TEST_CASE("the tree is found and read") {
  const auto has = [](std::string_view path) {
    return std::any_of(tree().begin(), tree().end(),
                       [&](const source_file& file) { return file.path == path; });
  };
  CHECK(has("core/units.hpp"));
  CHECK(has("tests/tidy/tidy.test.cpp"));
  CHECK(has("CMakeLists.txt"));
  CHECK(has("dev"));
}

TEST_CASE("every folder includes only what the folder table allows") {
  hold(check_includes);
}

TEST_CASE("the time is asked for in one file") {
  hold(check_clock);
}

TEST_CASE("every file is UTF-8 with LF and ends with a newline") {
  hold(check_encoding);
}

TEST_CASE("sources open with a comment, guard their headers and keep to 100 columns") {
  hold(check_form);
}

TEST_CASE("nothing is left unfinished or tied to one machine") {
  hold(check_words);
}

TEST_CASE("files and functions keep to their lengths") {
  hold([](const source_file& file) { return check_lengths(file, known_lengths); });
}

TEST_CASE("every exception names a file that exists") {
  for (const auto& listed : known_lengths) {
    INFO(listed.path);
    CHECK(std::any_of(tree().begin(), tree().end(),
                      [&](const source_file& file) { return file.path == listed.path; }));
  }
}
