// What from_json accepts, and how it refuses the rest.
#include <functional>
#include <random>

#include "core/error.hpp"
#include "model/tokenizer/reference_models.hpp"
#include "model/tokenizer/tokenizer.hpp"
#include "tests/support/catch.hpp"

namespace octavo::model {
namespace {

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using ids = std::vector<token_id>;

constexpr encode_options as_template{.add_special = false, .parse_special = true};
constexpr encode_options as_user{.add_special = false, .parse_special = false};

json tiny(const std::string& name) {
  return json::parse(reference::read_file(reference::fixture(name)));
}

tokenizer changed(const std::string& name, const std::function<void(json&)>& change) {
  json file = tiny(name);
  change(file);
  return tokenizer::from_json(file.dump());
}

void refuse(const std::string& name, const std::function<void(json&)>& change,
            const std::string& field, const std::string& why) {
  CHECK_THROWS_WITH(changed(name, change), ContainsSubstring("tokenizer.json: field \"" + field) &&
                                               ContainsSubstring(why));
}

/// Loading must end in a tokenizer that works or in an input_error.
void survives(const std::string& file, const std::string& config = "") {
  try {
    const tokenizer words = tokenizer::from_json(file, config);
    const ids tokens = words.encode("<|im_end|> hello wor\xC3\xA9 12 <s>x", as_template);
    (void)words.decode_text(tokens);
  } catch (const input_error&) {
    SUCCEED();
  }
}

/// Calls `visit` for each value of the tree.
void for_each_value(json& value, const std::function<void(json&)>& visit) {
  visit(value);
  if (value.is_structured()) {
    for (json& inner : value) for_each_value(inner, visit);
  }
}

const std::string byte_file = "tiny_byte_level.json";
const std::string sp_file = "tiny_sentencepiece.json";

}  // namespace

TEST_CASE("merges may be pairs instead of lines") {
  const tokenizer words = changed(byte_file, [](json& file) {
    for (json& rule : file["model"]["merges"]) {
      const std::string line = rule;
      const std::size_t space = line.find(' ');
      rule = {line.substr(0, space), line.substr(space + 1)};
    }
  });
  CHECK(words.encode("hello world!", as_user) == ids{32, 37, 16});
}

TEST_CASE("without byte fallback a character without a token is unknown") {
  const tokenizer words =
      changed(sp_file, [](json& file) { file["model"]["byte_fallback"] = false; });
  CHECK(words.encode("\xE2\x82\xAC", as_user) == ids{7, 0});
}

TEST_CASE("the newer form of the SentencePiece prefix splits alike") {
  const auto metaspace = [](const char* scheme, bool split) {
    return changed(sp_file, [&](json& file) {
      file["normalizer"] = nullptr;
      file["pre_tokenizer"] = {{"type", "Metaspace"},
                               {"replacement", "▁"},
                               {"prepend_scheme", scheme},
                               {"split", split}};
    });
  };
  for (const bool split : {true, false}) {
    CHECK(metaspace("always", split).encode("hello lo", as_user) == ids{19, 7, 17});
    CHECK(metaspace("never", split).encode("hello lo", as_user) == ids{8, 16, 17, 7, 17});
    CHECK(metaspace("always", split).encode("h<s>h", as_template) == ids{15, 1, 15});
    CHECK(metaspace("first", split).encode("h<s>h", as_template) == ids{15, 1, 8});
  }
}

TEST_CASE("digits and GPT-2's own splitting can be asked for by type") {
  const tokenizer words = changed(byte_file, [](json& file) {
    file["pre_tokenizer"]["pretokenizers"] = {{{"type", "Digits"}, {"individual_digits", true}},
                                              {{"type", "ByteLevel"}, {"add_prefix_space", false}}};
  });
  CHECK(words.encode("hello world 12", as_user) == ids{32, 37, 15, 17, 18});
  const tokenizer prefixed = changed(byte_file, [](json& file) {
    file["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", true}};
  });
  CHECK(prefixed.encode("world", as_user) == ids{37});
}

TEST_CASE("the configuration decides which tokens are put around a text") {
  const std::string file = tiny(byte_file).dump();
  const auto around = [&](const std::string& config) {
    return tokenizer::from_json(file, config).encode("hello");
  };
  CHECK(around("") == ids{41, 32});
  CHECK(around(R"({"bos_token":"<|bos|>","add_bos_token":false})") == ids{32});
  CHECK(around(R"({"bos_token":"<|bos|>","eos_token":"<|im_end|>","add_eos_token":true})") ==
        ids{41, 32, 42});
  CHECK(around(R"({"bos_token":null,"add_bos_token":null})") == ids{41, 32});
}

TEST_CASE("kinds of tokenizers that are not byte-pair models are refused by name") {
  for (const char* type : {"WordPiece", "Unigram", "WordLevel"}) {
    refuse(
        byte_file, [&](json& file) { file["model"]["type"] = type; }, "model", type);
  }
  refuse(
      byte_file,
      [](json& file) {
        file["normalizer"] = {{"type", "BertNormalizer"}};
      },
      "normalizer.type", "BertNormalizer");
  refuse(
      byte_file,
      [](json& file) {
        file["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
      },
      "pre_tokenizer.type", "BertPreTokenizer");
  refuse(
      byte_file,
      [](json& file) {
        file["post_processor"] = {{"type", "BertProcessing"}};
      },
      "post_processor.type", "BertProcessing");
  refuse(
      byte_file,
      [](json& file) {
        file["decoder"] = {{"type", "WordPiece"}};
      },
      "decoder.type", "WordPiece");
}

TEST_CASE("a malformed vocabulary is refused with the field") {
  refuse(
      byte_file, [](json& file) { file.erase("model"); }, "model", "is missing");
  refuse(
      byte_file, [](json& file) { file["model"].erase("vocab"); }, "model.vocab", "missing");
  refuse(
      byte_file, [](json& file) { file["model"]["vocab"] = json::object(); }, "model.vocab",
      "empty");
  refuse(
      byte_file, [](json& file) { file["model"]["vocab"]["h"] = -1; }, "model.vocab",
      "whole number from 0");
  refuse(
      byte_file, [](json& file) { file["model"]["vocab"]["h"] = 1e9; }, "model.vocab", "\"h\"");
  refuse(
      byte_file, [](json& file) { file["model"]["vocab"]["h"] = 1 << 22; }, "model.vocab",
      "4194303");
  refuse(
      byte_file, [](json& file) { file["model"]["vocab"]["new"] = 0; }, "model.vocab",
      "the number 0 to two tokens");
  refuse(
      sp_file, [](json& file) { file["model"]["unk_token"] = "nothing"; }, "model.unk_token",
      "nothing");
  refuse(
      byte_file, [](json& file) { file["model"]["end_of_word_suffix"] = "</w>"; },
      "model.end_of_word_suffix", "not supported");
  refuse(
      byte_file, [](json& file) { file["model"]["dropout"] = 0.1; }, "model.dropout",
      "not supported");
  CHECK_THROWS_WITH(tokenizer::from_json(R"({"model":{"type":"BPE","vocab":{"a":0,"a":1},
                        "merges":[]},"decoder":{"type":"Fuse"}})"),
                    ContainsSubstring("model.vocab") && ContainsSubstring("\"a\" twice"));
}

TEST_CASE("a malformed merge is refused with its number") {
  const auto merge = [](const json& rule) {
    return [rule](json& file) { file["model"]["merges"][3] = rule; };
  };
  refuse(byte_file, merge("h x"), "model.merges[3]", "\"x\", which the vocabulary lacks");
  refuse(byte_file, merge("e h"), "model.merges[3]", "\"eh\"");
  refuse(byte_file, merge("he"), "model.merges[3]", "not a pair");
  refuse(byte_file, merge(" he"), "model.merges[3]", "not a pair");
  refuse(byte_file, merge({"h"}), "model.merges[3]", "not a pair");
  refuse(byte_file, merge({"h", ""}), "model.merges[3]", "not a pair");
  refuse(byte_file, merge(7), "model.merges[3]", "not a pair");
  refuse(
      byte_file, [](json& file) { file["model"]["merges"] = 1; }, "model.merges", "not an array");
}

TEST_CASE("a malformed added token is refused with its number") {
  const auto with = [](const char* key, const json& value) {
    return [key, value](json& file) { file["added_tokens"][1][key] = value; };
  };
  refuse(byte_file, with("id", 3), "added_tokens[1].id", "another token's");
  refuse(byte_file, with("content", "<|bos|>"), "added_tokens[1].id", "another token's");
  refuse(byte_file, with("content", ""), "added_tokens[1].content", "1 to 1024 bytes");
  refuse(byte_file, with("content", std::string(1025, 'x')), "added_tokens[1].content", "1024");
  refuse(byte_file, with("id", nullptr), "added_tokens[1].id", "missing");
  refuse(byte_file, with("special", "yes"), "added_tokens[1].special", "true or false");
}

TEST_CASE("a step that cannot be carried out is refused") {
  const auto step = [](const json& second) {
    return [second](json& file) { file["pre_tokenizer"]["pretokenizers"][0] = second; };
  };
  const std::string at = "pre_tokenizer.pretokenizers[0]";
  refuse(byte_file,
         step({{"type", "Split"}, {"pattern", {{"Regex", "("}}}, {"behavior", "Isolated"}}),
         at + ".pattern.Regex", "malformed");
  refuse(byte_file,
         step({{"type", "Split"}, {"pattern", {{"String", ""}}}, {"behavior", "Isolated"}}),
         at + ".pattern.String", "empty");
  refuse(byte_file, step({{"type", "Split"}, {"pattern", {{"String", "a"}}}, {"behavior", "Odd"}}),
         at + ".behavior", "Odd");
  refuse(byte_file, step({{"type", "ByteLevel"}}), "pre_tokenizer.pretokenizers[1]",
         "must be the last");
  refuse(
      byte_file,
      [](json& file) { file["pre_tokenizer"]["pretokenizers"][1]["add_prefix_space"] = true; },
      "pre_tokenizer.pretokenizers[1]", "after it has been split");
  refuse(
      byte_file,
      [](json& file) { file["post_processor"]["special_tokens"]["<|bos|>"]["ids"][0] = 99; },
      "post_processor.special_tokens.<|bos|>.ids[0]", "0 to 45");
}

TEST_CASE("what is not JSON, or nested without end, is refused") {
  for (const std::string text : {"", "{", "[]", "nonsense", "{\"model\":{}}", "\xFF", "{} {}"}) {
    CHECK_THROWS_AS(tokenizer::from_json(text), input_error);
  }
  CHECK_THROWS_WITH(tokenizer::from_json(std::string(100000, '[')),
                    ContainsSubstring("tokenizer.json: malformed JSON"));
  const std::string file = tiny(byte_file).dump();
  const auto refuse_config = [&](const std::string& config, const std::string& why) {
    CHECK_THROWS_WITH(tokenizer::from_json(file, config),
                      ContainsSubstring("tokenizer_config.json") && ContainsSubstring(why));
  };
  refuse_config("{", "malformed JSON");
  refuse_config("[]", "not an object");
  refuse_config(R"({"bos_token":1})", "\"bos_token\"");
  refuse_config(R"({"bos_token":"<none>"})", "<none>");
  refuse_config(R"({"add_bos_token":"yes"})", "\"add_bos_token\"");
  refuse_config(std::string(100000, '['), "malformed JSON");
}

TEST_CASE("no file with one wrong value breaks the loader") {
  const json odd[] = {nullptr,        -1,        0,   1 << 21,      1e300,
                      true,           "",        "x", "<|im_end|>", json::array(),
                      json::object(), {1, "two"}};
  for (const std::string& name : {byte_file, sp_file}) {
    json file = tiny(name);
    for_each_value(file, [&](json& value) {
      const json kept = value;
      for (const json& replacement : odd) {
        value = replacement;
        survives(file.dump());
      }
      value = kept;
    });
  }
}

TEST_CASE("no file with some wrong bytes, or cut short, breaks the loader") {
  std::mt19937 random(5);
  for (const std::string& name : {byte_file, sp_file}) {
    const std::string file = tiny(name).dump();
    for (std::size_t length = 0; length < file.size(); ++length) survives(file.substr(0, length));
    for (int round = 0; round < 3000; ++round) {
      std::string broken = file;
      for (std::size_t i = 0; i <= random() % 3; ++i) {
        broken[random() % broken.size()] = static_cast<char>(random() % 256);
      }
      survives(broken);
      survives(file, broken.substr(0, random() % 400));
    }
  }
}

}  // namespace octavo::model
