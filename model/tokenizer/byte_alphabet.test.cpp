// The byte alphabet against its published values.
#include "model/tokenizer/byte_alphabet.hpp"

#include <set>

#include "model/tokenizer/utf8.hpp"
#include "tests/support/catch.hpp"

namespace octavo::model {

TEST_CASE("the byte alphabet has the published characters") {
  CHECK(byte_character('!') == U'!');
  CHECK(byte_character('~') == U'~');
  CHECK(byte_character(' ') == 0x120);
  CHECK(byte_character('\n') == 0x10A);
  CHECK(byte_character('\t') == 0x109);
  CHECK(byte_character(0x00) == 0x100);
  CHECK(byte_character(0xA1) == 0xA1);
  CHECK(byte_character(0xAD) == 0x143);
  CHECK(byte_character(0xFF) == 0xFF);
}

TEST_CASE("each byte has a character of its own and comes back from it") {
  std::set<char32_t> seen;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t character = byte_character(static_cast<unsigned char>(byte));
    CHECK(seen.insert(character).second);
    std::string token;
    append_code_point(token, character);
    CHECK(spelled_bytes(token) == std::string(1, static_cast<char>(byte)));
  }
}

TEST_CASE("a token with other characters spells no bytes") {
  CHECK_FALSE(spelled_bytes("a b").has_value());
  CHECK_FALSE(spelled_bytes("<\xEF\xBD\x9Cuser\xEF\xBD\x9C>").has_value());
  CHECK_FALSE(spelled_bytes("\xC2\xAD").has_value());  // U+00AD is written as U+0143
}

}  // namespace octavo::model
