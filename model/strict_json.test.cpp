// What the strict reader takes and what it refuses.
#include "model/strict_json.hpp"

#include "core/error.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;
using Catch::Matchers::ContainsSubstring;

namespace {

void refused(std::string_view text, const std::string& message) {
  INFO(text.substr(0, 50));
  CHECK_THROWS_AS(parse_strict_json(text, "f", 3), input_error);
  CHECK_THROWS_WITH(parse_strict_json(text, "f", 3), ContainsSubstring("f: " + message));
}

}  // namespace

TEST_CASE("documents are built as the library would build them") {
  const std::string text = R"( {"a":[1,-2,0.5,true,null,"x"],"b":{"a":{}}} )";
  CHECK(parse_strict_json(text, "f", 3) == nlohmann::json::parse(text));
  CHECK(parse_strict_json("7", "f", 3) == 7);
}

TEST_CASE("nesting is bounded, whatever the size") {
  CHECK_NOTHROW(parse_strict_json("[[[1]]]", "f", 3));
  refused("[[[[1]]]]", "nested deeper than 3");
  refused(std::string(1'000'000, '['), "nested deeper than 3");
}

TEST_CASE("a key may stand once in each object") {
  CHECK_NOTHROW(parse_strict_json(R"([{"a":1},{"a":2}])", "f", 3));
  refused(R"({"a":1,"b":2,"a":3})", "key \"a\" occurs twice");
  refused(R"({"x":{"a":1,"a":1}})", "key \"a\" occurs twice");
}

TEST_CASE("what is no JSON is refused with its place") {
  refused("", "not valid JSON");
  refused("{\"a\":1,}", "not valid JSON (at byte 8)");
  refused("{} x", "not valid JSON");
  refused(std::string_view("{}\0{", 4), "not valid JSON (a NUL at byte 2)");
  refused("\"\xC3(\"", "not valid JSON");
  refused("[NaN]", "not valid JSON");
  CHECK_THROWS_WITH(load_json_file("/no/such.json", 10), ContainsSubstring("cannot be opened"));
}
