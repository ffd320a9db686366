// Streaming: nothing is broken, repeated or lost.
#include "model/tokenizer/stream_decoder.hpp"

#include <random>

#include "core/error.hpp"
#include "model/tokenizer/reference_models.hpp"
#include "tests/support/catch.hpp"

namespace octavo::model {
namespace {

using ids = std::vector<token_id>;
using strings = std::vector<std::string>;

const std::string replacement = "\xEF\xBF\xBD";

tokenizer tiny(const std::string& name) {
  return tokenizer::from_json(reference::read_file(reference::fixture(name)));
}

/// What each push gives, then what flush gives.
strings streamed(const tokenizer& words, const ids& tokens, decode_options options = {}) {
  stream_decoder decoder(words, options);
  strings parts;
  for (const token_id token : tokens) parts.push_back(decoder.push(token));
  parts.push_back(decoder.flush());
  return parts;
}

std::string joined(const strings& parts) {
  std::string text;
  for (const std::string& part : parts) text += part;
  return text;
}

/// A tokenizer whose tokens are the 256 bytes and some pieces that cut characters.
tokenizer of_bytes() {
  gguf_vocabulary vocabulary;
  static const strings texts = [] {
    strings all;
    for (const char* digit_high = "0123456789ABCDEF"; *digit_high != 0; ++digit_high) {
      for (const char* digit_low = "0123456789ABCDEF"; *digit_low != 0; ++digit_low) {
        all.push_back(std::string("<0x") + *digit_high + *digit_low + ">");
      }
    }
    all.insert(all.end(), {"<s>", "\xE2\x96\x81", "\xE2\x96\x81the", "\xE4\xBD\xA0", ""});
    return all;
  }();
  vocabulary.model = "llama";
  vocabulary.tokens = {texts.begin(), texts.end()};
  vocabulary.scores.assign(texts.size(), 0.0F);
  vocabulary.token_types.assign(texts.size(), 6);
  for (std::size_t i = 256; i < texts.size(); ++i) vocabulary.token_types[i] = i == 256 ? 3 : 1;
  vocabulary.bos_token_id = 256;
  return tokenizer::from_gguf(vocabulary);
}

ids as_bytes(std::string_view text) {
  ids tokens;
  for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
  return tokens;
}

}  // namespace

TEST_CASE("a character cut by tokens comes out once, when it is whole") {
  const tokenizer words = tiny("tiny_byte_level.json");
  CHECK(streamed(words, {32, 24, 25, 26, 16}) == strings{"hello", "", "", "\xE2\x82\xAC", "!", ""});
  CHECK(streamed(words, {39, 22, 23}) == strings{"", "", "\xF0\x9F\x98\x80", ""});
}

TEST_CASE("a family of emoji, one byte a token, is never broken") {
  const std::string family =
      "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7";
  const strings parts = streamed(of_bytes(), as_bytes(family));
  CHECK(joined(parts) == family);
  for (const std::string& part : parts) {
    CHECK_FALSE(first_invalid_utf8(part).has_value());
    CHECK(part.find(replacement) == std::string::npos);
  }
}

TEST_CASE("CJK over every border between tokens comes out once") {
  const std::string text = "\xE4\xBD\xA0\xE5\xA5\xBD\xE4\xB8\x96";
  CHECK(streamed(of_bytes(), as_bytes(text)) ==
        strings{"", "", "\xE4\xBD\xA0", "", "", "\xE5\xA5\xBD", "", "", "\xE4\xB8\x96", ""});
}

TEST_CASE("an end within a character gives one replacement, and only there") {
  const tokenizer words = tiny("tiny_byte_level.json");
  stream_decoder decoder(words);
  CHECK(decoder.push(24).empty());
  CHECK(decoder.has_pending());
  CHECK(decoder.flush() == replacement);
  CHECK_FALSE(decoder.has_pending());
  CHECK(decoder.flush().empty());
}

TEST_CASE("the leading space is dropped at the very start and nowhere else") {
  const tokenizer words = tiny("tiny_sentencepiece.json");
  CHECK(streamed(words, {1, 19, 19}) == strings{"", "hello", " hello", ""});
  CHECK(streamed(words, {7, 19}) == strings{"", " hello", ""});
  CHECK(streamed(words, {1, 19}, {.skip_special = false}) == strings{"<s>", " hello", ""});
}

TEST_CASE("a special token is left out or spelled out") {
  const tokenizer words = tiny("tiny_byte_level.json");
  CHECK(streamed(words, {32, 42}) == strings{"hello", "", ""});
  CHECK(streamed(words, {32, 42}, {.skip_special = false}) == strings{"hello", "<|im_end|>", ""});
}

TEST_CASE("a token outside the vocabulary does not disturb the stream") {
  stream_decoder decoder(tiny("tiny_byte_level.json"));
  CHECK(decoder.push(24).empty());
  CHECK_THROWS_AS(decoder.push(1000), input_error);
  CHECK_THROWS_AS(decoder.push(-1), input_error);
  CHECK(decoder.push(25).empty());
  CHECK(decoder.push(26) == "\xE2\x82\xAC");
}

TEST_CASE("for any tokens the stream equals the decoding in one go") {
  const tokenizer all[] = {of_bytes(), tiny("tiny_byte_level.json"),
                           tiny("tiny_sentencepiece.json")};
  std::mt19937 random(11);
  for (const tokenizer& words : all) {
    std::uniform_int_distribution<token_id> any(0, words.vocab_size() - 1);
    // Lead and continuation bytes are rare among all tokens; prefer them half the time.
    std::uniform_int_distribution<token_id> high(std::min(128, words.vocab_size() - 1),
                                                 std::min(244, words.vocab_size() - 1));
    for (int round = 0; round < 2000; ++round) {
      ids tokens(random() % 12);
      for (token_id& token : tokens) token = random() % 2 == 0 ? any(random) : high(random);
      const decode_options options{.skip_special = random() % 2 == 0};
      const strings parts = streamed(words, tokens, options);
      REQUIRE(joined(parts) == words.decode_text(tokens, options));
      for (const std::string& part : parts) REQUIRE_FALSE(first_invalid_utf8(part).has_value());
    }
  }
}

}  // namespace octavo::model
