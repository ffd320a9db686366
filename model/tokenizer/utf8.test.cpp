// UTF-8 against the tables and examples of the Unicode standard.
#include "model/tokenizer/utf8.hpp"

#include "tests/support/catch.hpp"

namespace octavo::model {
namespace {

const std::string replacement = "\xEF\xBF\xBD";

std::string assembled(std::string_view bytes, std::size_t cut) {
  utf8_assembler assembler;
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += cut) {
    assembler.push(bytes.substr(at, cut), text);
  }
  assembler.flush(text);
  return text;
}

}  // namespace

TEST_CASE("valid UTF-8 is told from what only looks like it") {
  for (const std::string text : {"", "a", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
                                 "\xED\x9F\xBF", "\xEE\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    CHECK_FALSE(first_invalid_utf8(text).has_value());
  }
  CHECK(first_invalid_utf8("a\xFF") == 1U);
  CHECK(first_invalid_utf8("ab\x80") == 2U);
  CHECK(first_invalid_utf8("\xC0\x80") == 0U);          // overlong NUL
  CHECK(first_invalid_utf8("\xE0\x9F\xBF") == 0U);      // overlong
  CHECK(first_invalid_utf8("x\xED\xA0\x80") == 1U);     // surrogate
  CHECK(first_invalid_utf8("\xF4\x90\x80\x80") == 0U);  // above U+10FFFF
  CHECK(first_invalid_utf8("ok\xE2\x82") == 2U);        // cut off
  CHECK(first_invalid_utf8("\xC4\xE3\xBA\xC3") == 0U);  // GBK for "hello"
}

TEST_CASE("code points are read and written alike") {
  for (const char32_t code_point :
       {U'a', U'\x7F', U'\x80', U'\x7FF', U'\x800', U'\xFFFF', U'\x10000', U'\x10FFFF'}) {
    std::string text;
    append_code_point(text, code_point);
    std::size_t at = 0;
    CHECK(read_code_point(text, at) == code_point);
    CHECK(at == text.size());
  }
}

TEST_CASE("white space is Unicode's, without the Mongolian vowel separator") {
  int count = 0;
  for (char32_t code_point = 0; code_point < 0x10000; ++code_point) {
    count += is_white_space(code_point) ? 1 : 0;
  }
  CHECK(count == 25);
  CHECK(is_white_space(0x85));
  CHECK(is_white_space(0x3000));
  CHECK_FALSE(is_white_space(0x180E));
  CHECK_FALSE(is_white_space(0x200B));
}

TEST_CASE("however bytes are cut, the assembled text is the same") {
  const std::string family =
      "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9 caf\xC3\xA9 \xE4\xBD\xA0";
  for (std::size_t cut = 1; cut <= family.size(); ++cut) CHECK(assembled(family, cut) == family);
}

TEST_CASE("each part that cannot become a character gives one replacement") {
  // The examples of Unicode 15, tables 3-8 to 3-11.
  const auto marks = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += replacement;
    return text;
  };
  for (const std::size_t cut : {1, 2, 3, 100}) {
    CHECK(assembled("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", cut) == marks(8) + "A");
    CHECK(assembled("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", cut) == marks(8) + "A");
    CHECK(assembled("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", cut) ==
          marks(5) + "A" + marks(2) + "B");
    CHECK(assembled("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", cut) == marks(4) + "A");
  }
}

TEST_CASE("an unfinished character waits, and is replaced only at the end") {
  utf8_assembler assembler;
  std::string text;
  assembler.push("\xF0\x9F\x98", text);
  CHECK(text.empty());
  CHECK(assembler.has_pending());
  assembler.flush(text);
  CHECK(text == replacement);
  CHECK_FALSE(assembler.has_pending());
}

}  // namespace octavo::model
