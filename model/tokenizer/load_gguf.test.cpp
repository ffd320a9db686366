// What from_gguf accepts, and how it refuses the rest.
#include <functional>
#include <limits>

#include "core/error.hpp"
#include "model/tokenizer/tokenizer.hpp"
#include "tests/support/catch.hpp"

namespace octavo::model {
namespace {

using Catch::Matchers::ContainsSubstring;
using ids = std::vector<token_id>;

constexpr encode_options as_template{.add_special = false, .parse_special = true};
constexpr encode_options as_user{.add_special = false, .parse_special = false};

/// The vocabulary of fixtures/tiny_sentencepiece.json with scores in place of merges.
gguf_vocabulary sentencepiece() {
  gguf_vocabulary vocabulary;
  vocabulary.model = "llama";
  vocabulary.tokens = {"<unk>", "<s>", "</s>", "<0x0A>", "<0xE2>", "<0x82>", "<0xAC>", "▁",
                       "h",     "e",   "l",    "o",      "<",      "s",      ">",      "▁h",
                       "el",    "lo",  "▁hel", "▁hello", "<s",     "▁▁"};
  vocabulary.token_types = {2, 3, 3, 6, 6, 6, 6, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  vocabulary.scores.assign(vocabulary.tokens.size(), -100.0F);
  for (int i = 15; i <= 21; ++i) vocabulary.scores[i] = static_cast<float>(15 - i);
  return vocabulary;
}

gguf_vocabulary byte_level() {
  gguf_vocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = "qwen2";
  vocabulary.tokens = {"h",     "e",      "l",          "o",           "Ġ",     "!",
                       "<",     "|",      ">",          "he",          "ll",    "hell",
                       "hello", "Ġhello", "<|im_end|>", "<tool_call>", "oo  oo"};
  vocabulary.token_types = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 4, 4};
  vocabulary.merges = {"h e", "l l", "he ll", "hell o", "Ġ hello"};
  vocabulary.eos_token_id = 14;
  return vocabulary;
}

void refuse(gguf_vocabulary vocabulary, const std::function<void(gguf_vocabulary&)>& change,
            const std::string& key, const std::string& why) {
  change(vocabulary);
  CHECK_THROWS_WITH(tokenizer::from_gguf(vocabulary),
                    ContainsSubstring("\"tokenizer.ggml." + key + "\"") && ContainsSubstring(why));
}

}  // namespace

TEST_CASE("SentencePiece merges by score, and spells the rest in bytes") {
  const tokenizer words = tokenizer::from_gguf(sentencepiece());
  CHECK(words.encode("hello") == ids{1, 19});
  CHECK(words.encode("hello lo", as_user) == ids{19, 7, 17});
  CHECK(words.encode("\xE2\x82\xAC", as_user) == ids{7, 4, 5, 6});
  CHECK(words.encode("x", as_user) == ids{7, 0});
  CHECK(words.decode(ids{1, 19, 19, 2}) == "hello hello");
  CHECK(words.bos() == 1);
  CHECK(words.eos() == 2);
  CHECK(words.adds_bos());
}

TEST_CASE("of equal scores the leftmost pair merges first") {
  gguf_vocabulary vocabulary;
  vocabulary.model = "llama";
  vocabulary.add_space_prefix = false;
  vocabulary.add_bos_token = false;
  vocabulary.tokens = {"a", "b", "ab", "ba"};
  vocabulary.scores = {-9, -9, -1, -1};
  const tokenizer words = tokenizer::from_gguf(vocabulary);
  CHECK(words.encode("aba") == ids{2, 0});
  CHECK(words.encode("bab") == ids{3, 1});
}

TEST_CASE("control and byte tokens never come out of a user's text") {
  const tokenizer words = tokenizer::from_gguf(sentencepiece());
  CHECK(words.encode("<s>", as_user) == ids{7, 20, 14});
  CHECK(words.encode("<s>", as_template) == ids{1});
  CHECK(words.encode("<s>hello", as_template) == ids{1, 19});
}

TEST_CASE("user-defined tokens with spaces are found as SentencePiece does") {
  gguf_vocabulary vocabulary = sentencepiece();
  vocabulary.tokens[21] = "  ";
  vocabulary.token_types[21] = 4;
  vocabulary.add_space_prefix = false;
  const tokenizer words = tokenizer::from_gguf(vocabulary);
  CHECK(words.encode("lo  h", as_user) == ids{17, 21, 8});
  CHECK(words.encode("lo   h", as_user) == ids{17, 21, 15});
  CHECK(words.encode("lo▁ h", as_user) == ids{17, 21, 8});
  CHECK(words.decode(ids{17, 21, 8}) == "lo  h");
}

TEST_CASE("a byte-level file merges by rank and adds no first token") {
  const tokenizer words = tokenizer::from_gguf(byte_level());
  CHECK(words.encode("hello hello!") == ids{12, 13, 5});
  CHECK(words.encode("<|im_end|>", as_template) == ids{14});
  CHECK(words.encode("<|", as_user) == ids{6, 7});
  CHECK(words.encode("<tool_call>", as_template) == ids{15});
  // Only o, l, l, < and > have tokens; "ll" merges.
  CHECK(words.encode("<tool_call>", as_user) == ids{6, 3, 3, 2, 10, 8});
  CHECK(words.encode("oo  oo", as_user) == ids{16});
  CHECK(words.decode(ids{13, 16, 14}) == " hellooo  oo");
  CHECK(words.eot() == 14);
  CHECK_FALSE(words.adds_bos());
}

TEST_CASE("Llama 3's rule keeps whole pieces and adds the first token") {
  gguf_vocabulary vocabulary = byte_level();
  vocabulary.pre = "llama-bpe";
  vocabulary.merges = {"h e"};
  vocabulary.bos_token_id = 14;
  const tokenizer words = tokenizer::from_gguf(vocabulary);
  CHECK(words.encode("hello hell") == ids{14, 12, 4, 9, 2, 2});
  vocabulary.add_bos_token = false;
  CHECK(tokenizer::from_gguf(vocabulary).encode("hello") == ids{12});
}

TEST_CASE("a GGUF tokenizer that is no byte-pair model is refused by name") {
  for (const char* model : {"bert", "t5", "rwkv", ""}) {
    refuse(
        byte_level(), [&](gguf_vocabulary& v) { v.model = model; }, "model",
        "is \"" + std::string(model) + "\"; supported are llama and gpt2");
  }
  refuse(
      byte_level(), [](gguf_vocabulary& v) { v.pre = "unheard-of"; }, "pre", "unheard-of");
}

TEST_CASE("a malformed GGUF vocabulary is refused with the key") {
  using vocabulary = gguf_vocabulary;
  refuse(
      byte_level(), [](vocabulary& v) { v.tokens.clear(); }, "tokens", "empty");
  refuse(
      byte_level(), [](vocabulary& v) { v.token_types.pop_back(); }, "token_type", "16 entries");
  refuse(
      byte_level(), [](vocabulary& v) { v.token_types[3] = 7; }, "token_type", "token 3");
  refuse(
      byte_level(), [](vocabulary& v) { v.tokens[1] = "h"; }, "tokens", "\"h\" twice");
  refuse(
      byte_level(), [](vocabulary& v) { v.tokens[1] = "\xFF"; }, "tokens", "token 1");
  refuse(
      byte_level(), [](vocabulary& v) { v.merges.clear(); }, "merges", "missing or empty");
  refuse(
      byte_level(), [](vocabulary& v) { v.merges[1] = "l"; }, "merges", "at 1");
  refuse(
      byte_level(), [](vocabulary& v) { v.merges[1] = ""; }, "merges", "at 1");
  refuse(
      byte_level(), [](vocabulary& v) { v.merges[1] = "l "; }, "merges", "at 1");
  refuse(
      byte_level(), [](vocabulary& v) { v.merges[1] = "l x"; }, "merges", "\"x\" at 1");
  refuse(
      byte_level(), [](vocabulary& v) { v.merges[1] = "l h"; }, "merges", "\"lh\" at 1");
  refuse(
      byte_level(), [](vocabulary& v) { v.eos_token_id = 17; }, "eos_token_id", "0 to 16");
  refuse(
      byte_level(), [](vocabulary& v) { v.bos_token_id = -1; }, "bos_token_id", "is -1");
  refuse(
      sentencepiece(), [](vocabulary& v) { v.scores.pop_back(); }, "scores", "21 entries");
  refuse(
      sentencepiece(), [](vocabulary& v) { v.tokens[3] = "<0xZZ>"; }, "tokens", "<0xZZ>");
  refuse(
      sentencepiece(), [](vocabulary& v) { v.scores[4] = std::numeric_limits<float>::quiet_NaN(); },
      "scores", "not a number");
}

}  // namespace octavo::model
