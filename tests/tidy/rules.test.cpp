// The checker checked: every rule sees a violation, and passes what is allowed.
#include "tests/tidy/rules.hpp"

#include "tests/support/catch.hpp"

using namespace octavo::tidy;
using Catch::Matchers::ContainsSubstring;

namespace {

std::vector<violation> includes_of(std::string path, const std::string& target) {
  std::string text{"// A thing.\n#include "};
  text.append(target).append("\n");
  return check_includes(make_source(std::move(path), text));
}

/// A function of `lines` lines with what stands before its name.
std::string function_text(const std::string& before, int lines) {
  std::string text = before + "run(int a) {\n";
  for (int i = 0; i < lines - 2; ++i) text += "  step();\n";
  return text + "}\n";
}

}  // namespace

TEST_CASE("a folder that reaches past the table is told what it may include") {
  const auto found = includes_of("model/config.cpp", "\"traces/trace.hpp\"");
  REQUIRE(found.size() == 1);
  CHECK(to_string(found[0]) ==
        "model/config.cpp:2: model/ may not include traces/; allowed besides itself: core");
  CHECK(includes_of("core/a.hpp", "\"actors/messages.hpp\"").size() == 1);
  CHECK(includes_of("actors/a.hpp", "\"sim/clock.hpp\"").size() == 1);
  CHECK(includes_of("sim/a.hpp", "\"web/gateway/http.hpp\"").size() == 1);
  CHECK(includes_of("core/a.cpp", "<tests/support/catch.hpp>").size() == 1);
}

TEST_CASE("what the folder table allows passes") {
  CHECK(includes_of("sim/a.cpp", "\"actors/messages.hpp\"").empty());
  CHECK(includes_of("core/policy/a.cpp", "\"core/units.hpp\"").empty());
  CHECK(includes_of("core/a.test.cpp", "\"tests/support/catch.hpp\"").empty());
  CHECK(includes_of("programs/sim.cpp", "\"web/gateway/http.hpp\"").empty());
  CHECK(includes_of("bench/a.cpp", "\"sim/clock.hpp\"").empty());
}

TEST_CASE("core has the standard library without threads, time and IO") {
  CHECK(includes_of("core/a.hpp", "<vector>").empty());
  CHECK(includes_of("core/a.hpp", "<cstdint>").empty());
  CHECK(includes_of("core/a.hpp", "<nlohmann/json.hpp>").size() == 1);
  CHECK(includes_of("core/a.hpp", "<unistd.h>").size() == 1);
  CHECK(includes_of("core/a.cpp", "<thread>").size() == 1);
  CHECK(includes_of("core/a.cpp", "<chrono>").size() == 1);
  CHECK(includes_of("core/a.test.cpp", "<iostream>").empty());
}

TEST_CASE("CAF, Asio, CUDA and Catch stay where they belong") {
  CHECK(includes_of("actors/a.hpp", "<caf/typed_actor.hpp>").empty());
  CHECK(includes_of("model/a.hpp", "<caf/typed_actor.hpp>").size() == 1);
  CHECK(includes_of("web/gateway/a.hpp", "<asio.hpp>").empty());
  CHECK(includes_of("sim/a.hpp", "<asio/io_context.hpp>").size() == 1);
  CHECK(includes_of("gpu/a.cu", "<cuda_runtime.h>").empty());
  CHECK(includes_of("cpu/a.cpp", "<cuda_runtime.h>").size() == 1);
  CHECK(includes_of("bench/a.cpp", "<cublasLt.h>").size() == 1);
  CHECK(includes_of("traces/a.test.cpp", "<catch2/catch.hpp>").size() == 1);
}

TEST_CASE("relative includes are refused and commented ones ignored") {
  CHECK(includes_of("traces/a.cpp", "\"../core/units.hpp\"").size() == 1);
  const auto commented =
      make_source("core/a.cpp", "/*\n#include <thread>\n*/\n// #include <mutex>\n");
  CHECK(check_includes(commented).empty());
}

TEST_CASE("asking for the time is seen in code, not in comments or strings") {
  const std::string comment = "// ";
  const std::string newline = "\n";
  const std::string asks = "auto t = std::chrono::steady_clock::now();\n";
  const auto found = check_clock(make_source("sim/run.cpp", newline + asks));
  REQUIRE(found.size() == 1);
  CHECK(found[0].line == 2);
  CHECK_THAT(found[0].message, ContainsSubstring("actors/wall_clock.cpp only"));
  CHECK(check_clock(make_source("actors/wall_clock.cpp", asks)).empty());
  CHECK(check_clock(make_source("bench/a.cpp", asks)).empty());
  CHECK(check_clock(make_source("sim/run.cpp", comment + asks)).empty());
  CHECK(check_clock(make_source("sim/run.cpp", "auto s = R\"(steady_clock::now)\";\n")).empty());
  CHECK(check_clock(make_source("sim/a.test.cpp", "auto t = system_clock::now();\n")).size() == 1);
}

TEST_CASE("text is UTF-8 with LF and a newline at the end") {
  CHECK(check_encoding(make_source("a.md", "Tokens per step ≤ budget — 🙂\n")).empty());
  CHECK(check_encoding(make_source("a.md", "\xC3\x28\n")).size() == 1);
  CHECK(check_encoding(make_source("a.md", "\xE0\x80\x80\n")).size() == 1);
  CHECK(check_encoding(make_source("a.md", "\xED\xA0\x80\n")).size() == 1);
  CHECK(check_encoding(make_source("a.md", "cut \xE2\x89")).size() == 2);
  const auto dos = check_encoding(make_source("a.md", "one\ntwo\r\n"));
  REQUIRE(dos.size() == 1);
  CHECK(dos[0].line == 2);
  CHECK(check_encoding(make_source("a.md", "no newline")).size() == 1);
}

TEST_CASE("sources open with a comment and headers are guarded") {
  CHECK(check_form(make_source("core/a.hpp", "// A thing.\n#pragma once\n")).empty());
  CHECK(check_form(make_source("core/a.hpp", "// A thing.\nint a;\n")).size() == 1);
  CHECK(check_form(make_source("core/a.cpp", "#include <vector>\n")).size() == 1);
  CHECK(check_form(make_source("core/a.cpp", "")).size() == 1);
}

TEST_CASE("lines have 100 columns, counted in characters, and more for an address") {
  const std::string open = "// A thing.\n";
  const std::string comment = "// ";
  const auto with = [&](const std::string& line) {
    return check_form(make_source("core/a.cpp", open + line + "\n"));
  };
  CHECK(with(comment + std::string(97, 'x')).empty());
  const auto found = with(comment + std::string(98, 'x'));
  REQUIRE(found.size() == 1);
  CHECK(to_string(found[0]) == "core/a.cpp:2: 101 columns; allowed are 100");
  std::string wide = comment;
  for (int i = 0; i < 97; ++i) wide += "≤";
  CHECK(with(wide).empty());
  CHECK(with(comment + "https://" + std::string(120, 'x')).empty());
}

TEST_CASE("unfinished business and the paths of one machine are seen") {
  const auto with = [](const char* path, const char* line) {
    return check_words(make_source(path, std::string{"// A thing.\n"}.append(line).append("\n")))
        .size();
  };
  CHECK(with("core/a.cpp", "// TODO: later") == 1);
  CHECK(with("README.md", "FIXME") == 1);
  CHECK(with("core/a.cpp", "// XXX") == 1);
  CHECK(with("core/a.cpp", "int TODOS = 0;") == 0);
  CHECK(with("sim/a.cpp", "open(\"/home/me/trace\")") == 1);
  CHECK(with("sim/a.cpp", "open(\"/tmp/trace\")") == 1);
  CHECK(with("sim/a.test.cpp", "open(\"/tmp/trace\")") == 0);
  CHECK(with("sim/a.test.cpp", "open(\"/work/trace\")") == 1);
  CHECK(with("sim/a.cpp", "// https://example.org/home/page") == 0);
}

TEST_CASE("functions are found with their lengths, whatever surrounds them") {
  const auto file = make_source("core/a.cpp", R"text(// A thing.
namespace octavo {
namespace {
const int table[] = {
    1,
    2,
};
}
class thing : public base<int> {
 public:
  thing(int a, int b)
      : a_{a}, b_{b} {
    for (int i = 0; i < a; ++i) {
      use([&] { return "}"; });
    }
  }
  int a() const { return a_; }
  int a_ = 1'000;
};
template <class T>
[[nodiscard]] bool operator==(const T& a, const T& b) {
  return a.n == 1'000 && a.c == '{' && a.s == R"(" {)";
}
#define OPEN {
int last(options a = {}) {
  return a;  // }
}
}  // namespace octavo
)text");
  const auto found = functions_of(file);
  REQUIRE(found.size() == 4);
  CHECK(found[0].name == "thing");
  CHECK(found[0].line == 11);
  CHECK(found[0].length == 6);
  CHECK(found[1].name == "a");
  CHECK(found[1].length == 1);
  CHECK(found[2].line == 20);
  CHECK(found[2].length == 4);
  CHECK(found[3].name == "last");
  CHECK(found[3].length == 3);
}

TEST_CASE("functions have 70 lines, kernels 120, test cases are functions too") {
  const auto broken = [](const std::string& path, const std::string& text) {
    return check_lengths(make_source(path, text), {});
  };
  const std::string newline = "\n";
  CHECK(broken("core/a.cpp", function_text("void ", 70)).empty());
  const auto found = broken("core/a.cpp", newline + function_text("void ", 71));
  REQUIRE(found.size() == 1);
  CHECK(to_string(found[0]) == "core/a.cpp:2: run has 71 lines; allowed are 70");
  CHECK(broken("core/a.cpp", function_text("TEST_CASE(\"a\") { f(); }\nauto ", 71)).size() == 1);
  CHECK(broken("gpu/kernels/a/a.cu", function_text("__global__ void ", 120)).empty());
  CHECK(broken("gpu/kernels/a/a.cu", function_text("__global__ void ", 121)).size() == 1);
}

TEST_CASE("files have 600 lines") {
  CHECK(check_lengths(make_source("dev", std::string(600, '\n')), {}).empty());
  CHECK(check_lengths(make_source("dev", std::string(601, '\n')), {}).size() == 1);
  CHECK(check_lengths(make_source("data.json", std::string(601, '\n')), {}).empty());
}

TEST_CASE("an exception holds at its limit, and must follow when the length falls") {
  const auto file = make_source("core/a.cpp", function_text("void ", 80));
  const auto with = [&](const std::string& name, int lines) {
    return check_lengths(file, {{"core/a.cpp", name, lines}});
  };
  CHECK(with("run", 80).empty());
  CHECK_THAT(with("run", 79).at(0).message, ContainsSubstring("excepted up to 79"));
  CHECK_THAT(with("run", 81).at(0).message, ContainsSubstring("lower or remove its exception"));
  CHECK_THAT(with("walk", 80).at(1).message, ContainsSubstring("walk is gone"));
  const auto long_file = make_source("core/a.cpp", std::string(610, '\n'));
  CHECK(check_lengths(long_file, {{"core/a.cpp", "", 610}}).empty());
  CHECK(check_lengths(long_file, {{"core/a.cpp", "", 620}}).size() == 1);
}
