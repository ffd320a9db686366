// Patterns: what they match, what is refused, and the named split rules.
#include "model/tokenizer/text_pattern.hpp"

#include "core/error.hpp"
#include "model/tokenizer/split_rules.hpp"
#include "tests/support/catch.hpp"

namespace octavo::model {
namespace {

using Catch::Matchers::ContainsSubstring;
using strings = std::vector<std::string>;

strings matches(const text_pattern& pattern, const std::string& text) {
  std::vector<text_range> found;
  pattern.find_all(text, found);
  strings result;
  for (const text_range range : found) {
    result.push_back(text.substr(range.begin, range.end - range.begin));
  }
  return result;
}

strings matches(const std::string& expression, const std::string& text) {
  return matches(text_pattern::regex(expression, "test"), text);
}

strings pieces(const std::string& name, const std::string& text) {
  std::vector<std::string_view> found;
  pre_tokenizer_named(name).split(text, found);
  return {found.begin(), found.end()};
}

}  // namespace

TEST_CASE("white space in a pattern is Unicode's, in and out of classes") {
  const std::string text =
      "a\xE1\xA0\x8E"
      "b\xE3\x80\x80"
      "c\xC2\x85"
      "d\xC2\xA0";
  CHECK(matches(R"(\s)", text) == strings{"\xE3\x80\x80", "\xC2\x85", "\xC2\xA0"});
  CHECK(matches(R"([\s])", text) == matches(R"(\s)", text));
  CHECK(matches(R"(\S+)", text) == strings{"a\xE1\xA0\x8E"
                                           "b",
                                           "c", "d"});
  CHECK(matches(R"([^\s]+)", text) == matches(R"(\S+)", text));
}

TEST_CASE("a pattern matches by Unicode classes and never within a character") {
  CHECK(matches(R"(\p{L}+)", "h\xC3\xA9llo \xE4\xBD\xA0\xE5\xA5\xBD 1") ==
        strings{"h\xC3\xA9llo", "\xE4\xBD\xA0\xE5\xA5\xBD"});
  CHECK(matches(R"(\p{N}{1,3})", "12345") == strings{"123", "45"});
  CHECK(matches(R"((?i:'s|'ll))", "it'S we'LL") == strings{"'S", "'LL"});
  CHECK(matches(R"(a*)", "baac") == strings{"aa"});  // empty matches are passed over
  CHECK(matches(R"(a?+b++)", "aabbb") == strings{"abbb"});
}

TEST_CASE("a literal is found as it stands") {
  CHECK(matches(text_pattern::literal("a.", "test"), "a.a.ab") == strings{"a.", "a."});
  CHECK_THROWS_AS(text_pattern::literal("", "test"), input_error);
}

TEST_CASE("a pattern that cannot be used is refused with its place and reason") {
  const auto refuse = [](const std::string& expression, const std::string& why) {
    CHECK_THROWS_WITH(text_pattern::regex(expression, "here"),
                      ContainsSubstring("here: pattern") && ContainsSubstring(why));
  };
  refuse("(", "malformed");
  refuse(R"([\p{L}&&[a-z]])", "intersection");
  refuse(R"(\h+)", "\\h");
  refuse(R"([[a-z]])", "class inside a class");
  refuse(R"([\S])", "negated class");
  refuse(R"(\C)", "malformed");
}

TEST_CASE("a pattern that backtracks without end is stopped") {
  const auto pattern = text_pattern::regex(R"((?:a|a|aa)+$)", "test");
  std::vector<text_range> found;
  CHECK_THROWS_WITH(pattern.find_all(std::string(60, 'a') + "b", found),
                    ContainsSubstring("cannot be matched"));
}

TEST_CASE("the named rules cut as their models do") {
  const std::string text = "I'LL pay 12345 now!!\n\n  ok";
  CHECK(pieces("llama-bpe", text) ==
        strings{"I", "'LL", " pay", " ", "123", "45", " now", "!!\n\n", " ", " ok"});
  CHECK(pieces("qwen2", text) ==
        strings{"I", "'LL", " pay", " ", "1", "2", "3", "4", "5", " now", "!!\n\n", " ", " ok"});
  CHECK(pieces("gpt-2", text) ==
        strings{"I", "'", "LL", " pay", " 12345", " now", "!!", "\n\n ", " ok"});
  CHECK(pieces("smollm", "a 12 b") == strings{"a", " ", "1", "2", " b"});
  CHECK(pieces("deepseek-v3", "x1234\xE4\xBD\xA0 hi") ==
        strings{"x", "123", "4", "\xE4\xBD\xA0", " hi"});
  CHECK(pieces("gpt-4o", "HelloWorld's") == strings{"Hello", "World's"});
  CHECK(pieces("tekken", "HelloWORLD12") == strings{"Hello", "WORLD", "1", "2"});
  CHECK(pieces("qwen35",
               "e\xCC\x81"
               "x 1") == strings{"e\xCC\x81"
                                 "x",
                                 " ", "1"});
  CHECK(pieces("deepseek-coder", "a b\n1") == strings{"a", " b", "\n", "1"});
}

TEST_CASE("an unknown rule is refused, not guessed") {
  CHECK_THROWS_WITH(pre_tokenizer_named("banana"), ContainsSubstring("tokenizer.ggml.pre") &&
                                                       ContainsSubstring("banana") &&
                                                       ContainsSubstring("llama-bpe"));
  CHECK_THROWS_AS(pre_tokenizer_named(""), input_error);
}

TEST_CASE("long runs of white space cost linear time") {
  const std::string spaces(std::size_t{1} << 20, ' ');
  CHECK(pieces("llama-bpe", spaces).size() == 1);
  CHECK(pieces("deepseek-v3", spaces + "x").size() == 2);
}

}  // namespace octavo::model
