// Two tokenizers of a few dozen tokens, small enough to work every id out by hand.
// fixtures/tiny_byte_level.json: h 0, e 1, l 2, o 3, w 4, r 5, d 6, t 7, i 8, n 9, k 10,
// < 11, | 12, > 13, s 14, space 15, ! 16, 1 17, 2 18, newline 19, bytes F0 20, 9F 21,
// 98 22, 80 23, E2 24, 82 25, AC 26, C3 27, A9 28; then by merging he 29, ll 30,
// hell 31, hello 32, " w" 33, or 34, " wor" 35, ld 36, " world" 37, <| 38, F09F 39; and
// held 40, which no merge reaches. Added: <|bos|> 41, <|im_end|> 42, <think> 43,
// <sp> 44 (takes white space along), word 45 (a single word).
// fixtures/tiny_sentencepiece.json: <unk> 0, <s> 1, </s> 2, bytes 0A 3, E2 4, 82 5, AC 6,
// ▁ 7, h 8, e 9, l 10, o 11, < 12, s 13, > 14, then by merging ▁h 15, el 16, lo 17,
// ▁hel 18, ▁hello 19, "<s" 20, ▁▁ 21; a rule makes "<s" and ">" into <s>.
#include "model/tokenizer/tokenizer.hpp"

#include "core/error.hpp"
#include "model/tokenizer/reference_models.hpp"
#include "tests/support/catch.hpp"

namespace octavo::model {
namespace {

using Catch::Matchers::ContainsSubstring;
using ids = std::vector<token_id>;

constexpr encode_options as_template{.add_special = false, .parse_special = true};
constexpr encode_options as_user{.add_special = false, .parse_special = false};

tokenizer byte_level() {
  return tokenizer::from_json(reference::read_file(reference::fixture("tiny_byte_level.json")),
                              R"({"bos_token":"<|bos|>","eos_token":{"content":"<|im_end|>"},
                                  "model_max_length":1000000000000000019884624838656})");
}

tokenizer sentencepiece() {
  return tokenizer::from_json(reference::read_file(reference::fixture("tiny_sentencepiece.json")),
                              R"({"bos_token":"<s>","eos_token":"</s>"})");
}

}  // namespace

TEST_CASE("byte-level words merge by rank") {
  const tokenizer words = byte_level();
  CHECK(words.encode("hello world!", as_user) == ids{32, 37, 16});
  CHECK(words.encode("helded", as_user) == ids{29, 36, 1, 6});
  CHECK(words.encode("12", as_user) == ids{17, 18});
  CHECK(words.encode("he\n\n", as_user) == ids{29, 19, 19});
  CHECK(words.encode("", as_user).empty());
}

TEST_CASE("a piece that is a token stays whole where merges are ignored") {
  CHECK(byte_level().encode("held", as_user) == ids{40});
}

TEST_CASE("characters are spelled in bytes, after composition") {
  const tokenizer words = byte_level();
  CHECK(words.encode("\xF0\x9F\x98\x80", as_user) == ids{39, 22, 23});
  CHECK(words.encode("\xE2\x82\xAC", as_user) == ids{24, 25, 26});
  CHECK(words.encode("e\xCC\x81", as_user) == ids{27, 28});
}

TEST_CASE("a byte without a token is left out, as in the reference") {
  CHECK(byte_level().encode("hez", as_user) == ids{29});
}

TEST_CASE("template text spells control tokens and user text does not") {
  const tokenizer words = byte_level();
  const ids spelled{38, 8, 1, 9, 6, 12, 13};
  CHECK(words.encode("<|im_end|>", as_template) == ids{42});
  CHECK(words.encode("<|im_end|>", as_user) == spelled);
  CHECK(words.encode("<think>", as_template) == ids{43});
  CHECK(words.encode("<think>", as_user) == ids{11, 7, 0, 8, 9, 10, 13});

  const text_part parts[] = {{"<|bos|>", true}, {"<|im_end|>", false}, {"<|im_end|>", true}};
  ids expected{41};
  expected.insert(expected.end(), spelled.begin(), spelled.end());
  expected.push_back(42);
  CHECK(words.encode_parts(parts) == expected);
}

TEST_CASE("a control token cannot be put together across a border of trust") {
  const tokenizer words = byte_level();
  const ids spelled = words.encode("<|im_end|>", as_user);
  const text_part user_end[] = {{"<|im_", true}, {"end|>", false}};
  const text_part user_middle[] = {{"<|im", true}, {"_", false}, {"end|>", true}};
  const text_part only_template[] = {{"<|im_", true}, {"end|>", true}};
  CHECK(words.encode_parts(user_end) == spelled);
  CHECK(words.encode_parts(user_middle) == spelled);
  CHECK(words.encode_parts(only_template) == ids{42});
}

TEST_CASE("parts are encoded as the text they make together") {
  const tokenizer words = byte_level();
  const text_part parts[] = {{"hel", true}, {"lo", false}, {" wor", false}, {"ld!", true}};
  CHECK(words.encode_parts(parts) == ids{32, 37, 16});
}

TEST_CASE("the first token is never there twice") {
  const tokenizer words = byte_level();
  CHECK(words.encode("hello") == ids{41, 32});
  CHECK(words.encode("<|bos|>hello", {.add_special = true, .parse_special = true}) == ids{41, 32});
  CHECK(words.encode("<|bos|>", {.add_special = true, .parse_special = false}).front() == 41);
  const text_part parts[] = {{"<|bos|>", true}, {"hello", false}};
  CHECK(words.encode_parts(parts, true) == ids{41, 32});
  CHECK(words.encode_parts(parts) == ids{41, 32});
  CHECK(words.encode("") == ids{41});
}

TEST_CASE("added tokens mind their white space and their borders") {
  const tokenizer words = byte_level();
  CHECK(words.encode("he  <sp> \nhe", as_user) == ids{29, 44, 29});
  CHECK(words.encode("he word he", as_user) == ids{29, 15, 45, 15, 29});
  CHECK(words.encode("words", as_user) == ids{4, 34, 6, 14});
  CHECK(words.encode("sword", as_user) == ids{14, 4, 34, 6});
}

TEST_CASE("the vocabulary answers questions") {
  const tokenizer words = byte_level();
  CHECK(words.vocab_size() == 46);
  CHECK(words.bos() == 41);
  CHECK(words.eos() == 42);
  CHECK(words.eot() == 42);
  CHECK(words.adds_bos());
  CHECK(ids(words.end_tokens().begin(), words.end_tokens().end()) == ids{42});
  CHECK(words.piece(37) == " world");
  CHECK(words.piece(20) == "\xF0");
  CHECK(words.piece(42) == "<|im_end|>");
  CHECK(words.kind(42) == token_kind::control);
  CHECK(words.kind(43) == token_kind::user_defined);
  CHECK(words.kind(37) == token_kind::normal);
  CHECK(words.is_special(42));
  CHECK_FALSE(words.is_special(43));
  CHECK(words.added_token_id("<think>") == 43);
  CHECK_FALSE(words.added_token_id("hello").has_value());
}

TEST_CASE("decoding gives bytes back, and leaves special tokens out on request") {
  const tokenizer words = byte_level();
  CHECK(words.decode(ids{41, 32, 37, 16, 42}) == "hello world!");
  CHECK(words.decode(ids{41, 32, 42}, {.skip_special = false}) == "<|bos|>hello<|im_end|>");
  CHECK(words.decode(ids{43, 32}) == "<think>hello");
  CHECK(words.decode(ids{24, 25}) == "\xE2\x82");
  CHECK(words.decode_text(ids{24, 25, 32}) == "\xEF\xBF\xBDhello");
  CHECK_FALSE(words.strips_leading_space());
  CHECK(words.decode(ids{37}) == " world");
}

TEST_CASE("a token outside the vocabulary is refused") {
  const tokenizer words = byte_level();
  for (const token_id token : {-1, 46, 1 << 30}) {
    CHECK_THROWS_WITH(words.decode(ids{token}),
                      ContainsSubstring("outside the vocabulary (0 to 45)"));
  }
  CHECK_THROWS_AS(words.piece(46), input_error);
  CHECK_THROWS_AS(words.kind(-1), input_error);
}

TEST_CASE("text that is not UTF-8, or too long, is refused") {
  const tokenizer words = byte_level();
  CHECK_THROWS_WITH(words.encode("he\xC4\xE3"), ContainsSubstring("not valid UTF-8: byte 2 of 4"));
  CHECK_THROWS_WITH(words.encode(std::string(tokenizer::text_bytes_max + 1, 'h')),
                    ContainsSubstring("67108864"));
}

TEST_CASE("SentencePiece words begin with a visible space") {
  const tokenizer words = sentencepiece();
  CHECK(words.encode("hello") == ids{1, 19});
  CHECK(words.encode("hello hello", as_user) == ids{19, 19});
  CHECK(words.encode("lo", as_user) == ids{7, 17});
  CHECK(words.encode("  h", as_user) == ids{21, 15});
  CHECK(words.encode("", as_user).empty());
}

TEST_CASE("a word that begins in a template and ends in a user's text has one prefix") {
  const text_part parts[] = {{"hel", true}, {"lo", false}};
  CHECK(sentencepiece().encode_parts(parts) == ids{19});
}

TEST_CASE("a character without a token becomes its bytes, or is unknown") {
  const tokenizer words = sentencepiece();
  CHECK(words.encode("\xE2\x82\xAC", as_user) == ids{7, 4, 5, 6});
  CHECK(words.encode("\n", as_user) == ids{7, 3});
  CHECK(words.encode("x", as_user) == ids{7, 0});
  CHECK(words.encode("xyh", as_user) == ids{7, 0, 8});  // one for a run
}

TEST_CASE("merging never makes a control token out of a user's text") {
  const tokenizer words = sentencepiece();
  CHECK(words.encode("<s>", as_user) == ids{7, 20, 14});
  CHECK(words.encode("<s>h", as_template) == ids{1, 15});
  CHECK(words.encode("<0x0A>", as_user) == ids{7, 12, 0, 14});
}

TEST_CASE("SentencePiece text loses one space, at the very beginning only") {
  const tokenizer words = sentencepiece();
  CHECK(words.decode(ids{1, 19, 19}) == "hello hello");
  CHECK(words.decode(ids{1, 19}, {.skip_special = false}) == "<s> hello");
  CHECK(words.decode(ids{21, 15}) == "  h");
  CHECK(words.decode(ids{7, 4, 5, 6}) == "\xE2\x82\xAC");
  CHECK(words.kind(4) == token_kind::byte);
  CHECK(words.kind(0) == token_kind::unknown);
  CHECK(words.strips_leading_space());
}

TEST_CASE("a megabyte of one letter takes no quadratic time") {
  const std::string letters(std::size_t{1} << 20, 'l');
  CHECK(byte_level().encode(letters, as_user).size() == letters.size() / 2);
  CHECK(sentencepiece().encode(letters, as_user).size() == letters.size() + 1);
}

}  // namespace octavo::model
