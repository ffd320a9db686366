// Mapping files: contents, advice that changes nothing, and what is refused.
#include "model/container/mapped_file.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "core/error.hpp"
#include "model/container/test_files.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a mapped file shows the bytes of the file, also after it was moved") {
  const test_folder folder;
  const std::string text(10'000, 'o');
  mapped_file first(folder.write("file", text));
  mapped_file second(std::move(first));
  REQUIRE(second.bytes().size() == text.size());
  CHECK(std::memcmp(second.bytes().data(), text.data(), text.size()) == 0);
  CHECK(first.bytes().empty());
}

TEST_CASE("advice about any range leaves the contents alone") {
  const test_folder folder;
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += static_cast<char>(i % 251);
  const mapped_file file(folder.write("file", text));
  for (const std::size_t offset : {0UL, 1UL, 4096UL, 5000UL, 19'999UL, 20'000UL, 1UL << 40}) {
    for (const std::size_t length : {0UL, 1UL, 8192UL, ~0UL}) {
      file.will_need(offset, length);
      file.done_with(offset, length);
    }
  }
  CHECK(std::memcmp(file.bytes().data(), text.data(), text.size()) == 0);
}

TEST_CASE("what cannot be mapped is refused by name") {
  const test_folder folder;
  CHECK_THROWS_WITH(mapped_file("/no/such/file.gguf"),
                    ContainsSubstring("/no/such/file.gguf: cannot be opened"));
  CHECK_THROWS_WITH(mapped_file(folder.write("empty", "")), ContainsSubstring("is empty"));
  CHECK_THROWS_WITH(mapped_file(folder.path()), ContainsSubstring("is not a regular file"));
  CHECK_THROWS_AS(mapped_file("/no/such/file.gguf"), input_error);
}
