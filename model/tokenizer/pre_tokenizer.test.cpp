// Splitting against the documented examples of the reference library.
#include "model/tokenizer/pre_tokenizer.hpp"

#include "tests/support/catch.hpp"

namespace octavo::model {
namespace {

using strings = std::vector<std::string>;

strings split(const std::string& text, split_behavior behavior, bool invert = false) {
  pre_tokenizer pre;
  pre.add({text_pattern::literal("-", "test"), behavior, invert});
  std::vector<std::string_view> pieces;
  pre.split(text, pieces);
  return {pieces.begin(), pieces.end()};
}

}  // namespace

// The expected pieces are those in the documentation of Hugging Face's `tokenizers`
// for the text "the-final--countdown".
TEST_CASE("a split treats what it matches in five ways") {
  const std::string text = "the-final--countdown";
  CHECK(split(text, split_behavior::removed) == strings{"the", "final", "countdown"});
  CHECK(split(text, split_behavior::isolated) ==
        strings{"the", "-", "final", "-", "-", "countdown"});
  CHECK(split(text, split_behavior::merged_with_previous) ==
        strings{"the-", "final-", "-", "countdown"});
  CHECK(split(text, split_behavior::merged_with_next) ==
        strings{"the", "-final", "-", "-countdown"});
  CHECK(split(text, split_behavior::contiguous) == strings{"the", "-", "final", "--", "countdown"});
}

TEST_CASE("an inverted split matches the rest") {
  CHECK(split("a-b", split_behavior::removed, true) == strings{"-"});
  CHECK(split("ab", split_behavior::removed, true) == strings{});
  CHECK(split("ab", split_behavior::isolated, true) == strings{"ab"});
}

TEST_CASE("matches at the ends have nothing to join") {
  CHECK(split("-a-", split_behavior::merged_with_previous) == strings{"-", "a-"});
  CHECK(split("-a-", split_behavior::merged_with_next) == strings{"-a", "-"});
  CHECK(split("", split_behavior::isolated) == strings{});
}

TEST_CASE("each step sees the pieces of the one before, on their own") {
  pre_tokenizer pre;
  pre.add({text_pattern::literal("-", "test"), split_behavior::removed, false});
  pre.add({text_pattern::regex(R"(\s+(?!\S))", "test"), split_behavior::isolated, false});
  std::vector<std::string_view> pieces;
  pre.split("a  -b  c", pieces);
  CHECK(strings(pieces.begin(), pieces.end()) == strings{"a", "  ", "b", " ", " c"});
}

TEST_CASE("a prefix comes once, where the scheme says") {
  const auto prepared = [](prefix_scheme scheme, const std::string& text, bool at_start) {
    pre_tokenizer pre;
    pre.prepare_by({"_", scheme, false});
    return pre.prepare(text, at_start);
  };
  CHECK(prepared(prefix_scheme::always, "a b", false) == "_a_b");
  CHECK(prepared(prefix_scheme::first, "a b", true) == "_a_b");
  CHECK(prepared(prefix_scheme::first, "a b", false) == "a_b");
  CHECK(prepared(prefix_scheme::never, "a b", true) == "a_b");
  CHECK(prepared(prefix_scheme::always, " a", true) == "_a");
  CHECK(prepared(prefix_scheme::always, "", true).empty());
}

TEST_CASE("a byte-level prefix is left out before any white space") {
  pre_tokenizer pre;
  pre.prepare_by({" ", prefix_scheme::always, true});
  CHECK(pre.prepare("a", false) == " a");
  CHECK(pre.prepare("\na", false) == "\na");
}

}  // namespace octavo::model
