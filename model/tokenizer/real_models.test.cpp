// Token ids equal to Hugging Face's `tokenizers` with the files of real models.
// Needs $OCTAVO_TOKENIZERS, which bench/reference/tokenizer_fixtures.py fills.
#include <algorithm>

#include "model/tokenizer/reference_models.hpp"
#include "model/tokenizer/stream_decoder.hpp"
#include "tests/support/catch.hpp"

namespace octavo::model {
namespace {

using nlohmann::json;
using ids = std::vector<token_id>;

constexpr encode_options as_template{.add_special = false, .parse_special = true};
constexpr encode_options as_user{.add_special = false, .parse_special = false};
constexpr decode_options everything{.skip_special = false};

/// Compares all texts and reports the first few that differ.
class comparison {
 public:
  comparison(std::string model, const tokenizer& words) : model_(std::move(model)), words_(words) {}

  void run(const json& texts, const json& expected) {
    REQUIRE(texts.size() == expected.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::string text = texts[i];
      const json& row = expected[i];
      const ids wanted = row.at("ids").get<ids>();
      check(text, "template", words_.encode(text, as_template), wanted);
      check(text, "user", words_.encode(text, as_user), row.value("user", wanted));
      const std::string decoded = row.value("text", text);
      check(text, "decoded", words_.decode_text(wanted, everything), decoded);
      check(text, "streamed", streamed(wanted), decoded);
    }
    CHECK(differing_ == 0);
  }

 private:
  [[nodiscard]] std::string streamed(const ids& tokens) const {
    stream_decoder decoder(words_, everything);
    std::string text;
    for (const token_id token : tokens) text += decoder.push(token);
    return text + decoder.flush();
  }

  template <class T>
  void check(const std::string& text, const char* what, const T& got, const T& wanted) {
    if (got == wanted) return;
    if (++differing_ <= 5) {
      UNSCOPED_INFO(model_ << ", " << what << ", text " << json(text).dump() << "\n  got    "
                           << json(got).dump() << "\n  wanted " << json(wanted).dump());
    }
  }

  std::string model_;
  const tokenizer& words_;
  int differing_ = 0;
};

void compare_json_model(const std::string& name) {
  const auto folder = reference::folder();
  if (!folder || !std::filesystem::exists(*folder / name / "tokenizer.json")) {
    WARN("skipped: OCTAVO_TOKENIZERS with " << name << "/tokenizer.json absent");
    return;
  }
  const tokenizer words = reference::load_json_model(*folder / name);
  const json texts = json::parse(reference::read_file(reference::fixture("corpus.json")));
  const json expected =
      json::parse(reference::read_file(reference::fixture("expected.json"))).at(name);
  comparison(name, words).run(texts, expected.at("texts"));
  // The reference library knows tokenizer.json alone, without its configuration.
  const tokenizer bare =
      tokenizer::from_json(reference::read_file(*folder / name / "tokenizer.json"));
  CHECK(bare.encode("Hi") == expected.at("around").get<ids>());
  const auto random = *folder / "random_corpus.json";
  comparison(name + ", random", words)
      .run(json::parse(reference::read_file(random)),
           json::parse(reference::read_file(*folder / name / "random_expected.json")).at("texts"));
}

/// Whether the two formats agree on what the text means: tokenizer.json finds runs of
/// literal visible spaces in the raw text and calls <mask> ordinary, GGUF does neither.
bool same_in_both(const std::string& text) {
  return text.find("▁▁") == std::string::npos && text.find("<mask>") == std::string::npos;
}

void compare_gguf_model(const std::string& name) {
  const auto folder = reference::folder();
  if (!folder || !std::filesystem::exists(*folder / name / "gguf.json")) {
    WARN("skipped: OCTAVO_TOKENIZERS with " << name << "/gguf.json absent");
    return;
  }
  const reference::gguf_keys keys(*folder / name / "gguf.json");
  const tokenizer words = tokenizer::from_gguf(keys.view());
  const json texts = json::parse(reference::read_file(reference::fixture("corpus.json")));
  const json rows =
      json::parse(reference::read_file(reference::fixture("expected.json"))).at(name).at("texts");
  json shared_texts = json::array();
  json shared_rows = json::array();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (!same_in_both(texts[i])) continue;
    shared_texts.push_back(texts[i]);
    shared_rows.push_back(rows.at(i));
  }
  comparison(name + ", GGUF", words).run(shared_texts, shared_rows);
  const auto random = *folder / name / "random_expected.json";
  comparison(name + ", GGUF, random", words)
      .run(json::parse(reference::read_file(*folder / "random_corpus.json")),
           json::parse(reference::read_file(random)).at("texts"));
}

}  // namespace

TEST_CASE("GGUF files give the ids of the same model's JSON", "[real]") {
  compare_gguf_model("gemma3");
  compare_gguf_model("smollm2");
}

TEST_CASE("Llama 2's tokens equal the reference's", "[real]") {
  compare_json_model("llama2");
}
TEST_CASE("Llama 3's tokens equal the reference's", "[real]") {
  compare_json_model("llama3");
}
TEST_CASE("Llama 3.1's tokens equal the reference's", "[real]") {
  compare_json_model("llama3_1");
}
TEST_CASE("Qwen 3's tokens equal the reference's", "[real]") {
  compare_json_model("qwen3");
}
TEST_CASE("Gemma 3's tokens equal the reference's", "[real]") {
  compare_json_model("gemma3");
}
TEST_CASE("DeepSeek V3's tokens equal the reference's", "[real]") {
  compare_json_model("deepseek_v3");
}
TEST_CASE("SmolLM2's tokens equal the reference's", "[real]") {
  compare_json_model("smollm2");
}

}  // namespace octavo::model
