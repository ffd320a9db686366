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
      check(text, "decoded", words_.decode_text(wanted, everything), row.value("text", text));
    }
    CHECK(differing_ == 0);
  }

 private:
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
  const auto random = *folder / "random_corpus.json";
  comparison(name + ", random", words)
      .run(json::parse(reference::read_file(random)),
           json::parse(reference::read_file(*folder / name / "random_expected.json")).at("texts"));
}

}  // namespace

TEST_CASE("a SentencePiece GGUF file gives the ids of the same family's JSON", "[real]") {
  const auto folder = reference::folder();
  if (!folder || !std::filesystem::exists(*folder / "gemma3/gguf.json")) {
    WARN("skipped: OCTAVO_TOKENIZERS with gemma3/gguf.json absent");
    return;
  }
  const reference::gguf_keys keys(*folder / "gemma3/gguf.json");
  const tokenizer words = tokenizer::from_gguf(keys.view());
  const json expected = json::parse(reference::read_file(reference::fixture("expected.json")));
  comparison("gemma3.gguf", words)
      .run(json::parse(reference::read_file(reference::fixture("corpus.json"))),
           expected.at("gemma3").at("texts"));
  comparison("gemma3.gguf, random", words)
      .run(json::parse(reference::read_file(*folder / "random_corpus.json")),
           json::parse(reference::read_file(*folder / "gemma3/random_expected.json")).at("texts"));
}

TEST_CASE("a byte-level GGUF file gives the reference's ids", "[real]") {
  const auto folder = reference::folder();
  if (!folder || !std::filesystem::exists(*folder / "smollm2/gguf.json")) {
    WARN("skipped: OCTAVO_TOKENIZERS with smollm2/gguf.json absent");
    return;
  }
  const reference::gguf_keys keys(*folder / "smollm2/gguf.json");
  const tokenizer words = tokenizer::from_gguf(keys.view());
  const json expected = json::parse(reference::read_file(reference::fixture("expected.json")));
  comparison("smollm2.gguf", words)
      .run(json::parse(reference::read_file(reference::fixture("corpus.json"))),
           expected.at("smollm2").at("texts"));
  comparison("smollm2.gguf, random", words)
      .run(json::parse(reference::read_file(*folder / "random_corpus.json")),
           json::parse(reference::read_file(*folder / "smollm2/random_expected.json")).at("texts"));
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
