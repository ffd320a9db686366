// Bytes to tokens and back.
#include "model/tokenizer/byte_tokenizer.hpp"

#include <string>
#include <vector>

#include "tests/support/catch.hpp"

using namespace octavo;

TEST_CASE("a byte tokenizer's tokens are the bytes of the text, and give it back") {
  const model::tokenizer words = model::byte_tokenizer();
  std::string text = "a b\n\té 😀";
  for (int byte = 1; byte < 256; ++byte) text += static_cast<char>(byte < 128 ? byte : 'x');
  std::vector<token_id> bytes;
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  CHECK(words.vocab_size() == 256);
  CHECK(words.encode(text) == bytes);
  CHECK(words.decode(bytes) == text);
}
