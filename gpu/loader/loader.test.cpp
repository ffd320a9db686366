// Libraries that are not there or are something else are problems told, not crashes.
#include "gpu/loader/loader.hpp"

#include "tests/support/catch.hpp"

using namespace octavo::gpu;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a library that is not there is a problem that names the file") {
  const loaded_backend got = load_backend("/nowhere/liboctavo_cuda.so");
  CHECK(got.found == nullptr);
  CHECK_THAT(got.problem, ContainsSubstring("/nowhere/liboctavo_cuda.so"));
}

TEST_CASE("a file that is no library is a problem") {
  const loaded_backend got = load_backend(__FILE__);
  CHECK(got.found == nullptr);
  CHECK(!got.problem.empty());
}

TEST_CASE("a library of something else is a problem") {
  const loaded_backend got = load_backend("/lib/x86_64-linux-gnu/libz.so.1");
  CHECK(got.found == nullptr);
  CHECK(!got.problem.empty());
}
