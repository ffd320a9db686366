// The tokenizer and the end tokens of a checkpoint, from either form.
#include "model/load_tokenizer.hpp"

#include "core/error.hpp"
#include "model/container/tiny_checkpoints.hpp"
#include "model/tokenizer/reference_models.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;
using Catch::Matchers::ContainsSubstring;
using ids = std::vector<token_id>;

namespace {

/// A description of a Llama with a SentencePiece-style vocabulary, without weights.
gguf_writer described() {
  gguf_writer w = described_llama();
  w.text("tokenizer.ggml.model", "llama");
  return w;
}

gguf_writer& with_vocabulary(gguf_writer& w) {
  w.texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "<turn>", "a", "b", "ab"});
  w.numbers<float>("tokenizer.ggml.scores", 6, {0, 0, 0, 0, -3, -4, -1});
  return w.numbers<std::int32_t>("tokenizer.ggml.token_type", 5, {2, 3, 3, 3, 1, 1, 1});
}

}  // namespace

TEST_CASE("a GGUF file's keys make its tokenizer") {
  gguf_writer w = described();
  with_vocabulary(w).u32("tokenizer.ggml.bos_token_id", 1).u32("tokenizer.ggml.eos_token_id", 2);
  w.u32("tokenizer.ggml.eot_token_id", 3).key("tokenizer.ggml.add_space_prefix", 7, {'\0'});
  const test_folder folder;
  const auto source = checkpoint::open(folder.write("m.gguf", w.file()));
  const tokenizer words = load_tokenizer(source);
  CHECK(words.encode("abb") == ids{1, 6, 5});
  CHECK(words.decode(ids{1, 6, 5}) == "abb");
  CHECK(words.eos() == 2);
  CHECK(words.eot() == 3);
  CHECK(end_tokens_of(source, words) == ids{2, 3});
}

TEST_CASE("a GGUF file without a vocabulary is refused by its key") {
  gguf_writer w = described();
  w.u32("llama.vocab_size", 7);
  const test_folder folder;
  const auto source = checkpoint::open(folder.write("m.gguf", w.file()));
  CHECK_THROWS_AS(load_tokenizer(source), input_error);
  CHECK_THROWS_WITH(load_tokenizer(source), ContainsSubstring("tokenizer.ggml.tokens"));
}

TEST_CASE("an end token beyond the vocabulary is refused by its key") {
  gguf_writer w = described();
  with_vocabulary(w).u32("tokenizer.ggml.eos_token_id", 7);
  const test_folder folder;
  const auto source = checkpoint::open(folder.write("m.gguf", w.file()));
  CHECK_THROWS_WITH(load_tokenizer(source), ContainsSubstring("tokenizer.ggml.eos_token_id"));
}

TEST_CASE("a directory's tokenizer.json is read, and its makers' end tokens are added") {
  const test_folder folder;
  write_directory(folder);
  folder.write("tokenizer.json",
               reference::read_file(reference::fixture("tiny_sentencepiece.json")));
  folder.write("tokenizer_config.json", R"({"eos_token":"</s>"})");
  folder.write("generation_config.json", R"({"eos_token_id":[9,2]})");
  const auto source = checkpoint::open(folder.path());
  const tokenizer words = load_tokenizer(source);
  CHECK(words.encode("hello") == ids{1, 19});
  CHECK(end_tokens_of(source, words) == ids{2, 9});
}

TEST_CASE("a directory without tokenizer.json is refused by that name") {
  const test_folder folder;
  write_directory(folder);
  const auto source = checkpoint::open(folder.path());
  CHECK_THROWS_AS(load_tokenizer(source), input_error);
  CHECK_THROWS_WITH(load_tokenizer(source),
                    ContainsSubstring(folder.path()) && ContainsSubstring("tokenizer.json"));
}
