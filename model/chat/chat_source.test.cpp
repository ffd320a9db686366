// Templates and special tokens from models on disk.
#include "model/chat/chat_source.hpp"

#include "core/error.hpp"
#include "model/chat/chat_template.hpp"
#include "model/container/tiny_checkpoints.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;
using Catch::Matchers::ContainsSubstring;
using texts = std::map<std::string, std::string, std::less<>>;

namespace {

gguf_writer described() {
  gguf_writer w = described_llama();
  w.texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>"});
  return w;
}

}  // namespace

TEST_CASE("a GGUF file's templates and special tokens are read") {
  gguf_writer w = described();
  w.text("tokenizer.chat_template", "D").text("tokenizer.chat_template.tool_use", "T");
  w.u32("tokenizer.ggml.bos_token_id", 1).u32("tokenizer.ggml.eos_token_id", 2);
  const test_folder folder;
  const auto found = read_chat_source(checkpoint::open(folder.write("m.gguf", w.file())));
  CHECK(found.templates == texts{{"default", "D"}, {"tool_use", "T"}});
  CHECK(found.special_tokens == texts{{"bos_token", "<s>"}, {"eos_token", "</s>"}});
}

TEST_CASE("a model without a template is refused by name") {
  const test_folder folder;
  const auto source = checkpoint::open(folder.write("m.gguf", described().file()));
  CHECK(read_chat_source(source).templates.empty());
  CHECK_THROWS_AS(chat_template::from(source), input_error);
  CHECK_THROWS_WITH(chat_template::from(source),
                    ContainsSubstring("m.gguf") && ContainsSubstring("has no chat template"));
}

TEST_CASE("a special token beyond the vocabulary is refused by its key") {
  gguf_writer w = described();
  w.u32("tokenizer.ggml.bos_token_id", 3);
  const test_folder folder;
  const auto source = checkpoint::open(folder.write("m.gguf", w.file()));
  CHECK_THROWS_WITH(read_chat_source(source), ContainsSubstring("tokenizer.ggml.bos_token_id"));
}

TEST_CASE("a directory's chat_template.jinja goes before its configuration") {
  const test_folder folder;
  write_directory(folder);
  CHECK(read_chat_source(checkpoint::open(folder.path())).templates.empty());
  folder.write("tokenizer_config.json",
               R"({"chat_template":"C","bos_token":{"content":"<s>"},"eos_token":"</s>",
                   "pad_token":null,"model_max_length":1000000000000000019884624838656})");
  const auto configured = read_chat_source(checkpoint::open(folder.path()));
  CHECK(configured.templates == texts{{"default", "C"}});
  CHECK(configured.special_tokens == texts{{"bos_token", "<s>"}, {"eos_token", "</s>"}});
  folder.write("chat_template.jinja", "J");
  CHECK(read_chat_source(checkpoint::open(folder.path())).templates == texts{{"default", "J"}});
}

TEST_CASE("a list of named templates is read") {
  const auto found = parse_chat_source(
      R"({"chat_template":[{"name":"default","template":"D"},{"name":"rag","template":"R"}]})");
  CHECK(found.templates == texts{{"default", "D"}, {"rag", "R"}});
}

TEST_CASE("malformed configurations are refused by their field") {
  CHECK_THROWS_AS(parse_chat_source("{"), input_error);
  CHECK_THROWS_WITH(parse_chat_source("{"), ContainsSubstring("tokenizer_config.json"));
  CHECK_THROWS_AS(parse_chat_source("[]"), input_error);
  CHECK_THROWS_WITH(parse_chat_source(R"({"chat_template":5})"),
                    ContainsSubstring("chat_template"));
  CHECK_THROWS_WITH(parse_chat_source(R"({"chat_template":[{"name":"x"}]})"),
                    ContainsSubstring("chat_template"));
  CHECK_THROWS_WITH(parse_chat_source(R"({"bos_token":7})"), ContainsSubstring("bos_token"));
}
