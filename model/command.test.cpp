// `octavo model` from the outside: what it prints, and its exit codes.
#include "model/command.hpp"

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "model/container/gguf_writer.hpp"
#include "model/container/safetensors_writer.hpp"
#include "model/container/test_files.hpp"
#include "tests/support/catch.hpp"

using namespace octavo::model;
using Catch::Matchers::ContainsSubstring;

namespace {

struct outcome {
  int code = 0;
  std::string out;
  std::string err;
};

outcome run(std::vector<std::string> words) {
  words.insert(words.begin(), "model");
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  std::ostringstream out;
  std::ostringstream err;
  const int code = model_command(static_cast<int>(argv.size()), argv.data(), out, err);
  return {code, out.str(), err.str()};
}

std::string gguf_model(const std::string& name) {
  gguf_writer w;
  w.text("general.architecture", "qwen2").text("general.name", name);
  w.u32("qwen2.embedding_length", 64).u32("qwen2.block_count", 2);
  w.u32("qwen2.attention.head_count", 4).u32("qwen2.attention.head_count_kv", 2);
  w.u32("qwen2.feed_forward_length", 128).u32("qwen2.context_length", 4096);
  w.f32("qwen2.attention.layer_norm_rms_epsilon", 1e-6F);
  w.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "qwen2");
  w.texts("tokenizer.ggml.tokens", {"a", "b"}).text("tokenizer.chat_template", "{{x}}");
  w.tensor("token_embd.weight", 8, {64, 2}, std::string(4 * 34, '\0'));
  w.tensor("output_norm.weight", 0, {64}, std::string(256, '\0'));
  return w.file();
}

}  // namespace

TEST_CASE("inspect shows shape, types and tokenizer of a GGUF file") {
  const test_folder folder;
  const std::string path = folder.write("m.gguf", gguf_model("Toy"));
  const outcome table = run({"inspect", path});
  CHECK(table.code == 0);
  for (const char* text :
       {"Toy (qwen2), GGUF v3", "2 layers, width 64, MLP 128, vocabulary 2 (tied head)",
        "4 heads, 2 for keys and values, of 16", "4096 tokens", "byte-level BPE (qwen2), 2 tokens",
        ", chat template", "Q8_0", "256 bytes a token"}) {
    CHECK_THAT(table.out, ContainsSubstring(text));
  }
  const outcome json = run({"inspect", path, "--json"});
  const auto document = nlohmann::json::parse(json.out);
  CHECK(document.at("architecture") == "qwen2");
  CHECK(document.at("layers") == 2);
  CHECK(document.at("tensor_bytes") == 136 + 256);
  // 2 layers x (keys and values) x 2 heads x 16 x 2 bytes.
  CHECK(document.at("kv_bytes_per_token_fp16") == 256);
  REQUIRE(document.at("types").size() == 2);
  CHECK(document.at("types")[1].at("type") == "Q8_0");
  CHECK(document.at("types")[1].at("elements") == 128);
  CHECK(document.at("types")[1].at("bytes") == 136);
}

TEST_CASE("names from a file cannot speak to the terminal") {
  const test_folder folder;
  const std::string path = folder.write("m.gguf", gguf_model("\x1b[31mred\xff"));
  const outcome table = run({"inspect", path});
  CHECK(table.code == 0);
  CHECK(table.out.find('\x1b') == std::string::npos);
  const outcome json = run({"inspect", path, "--json"});
  CHECK(json.code == 0);
  CHECK_NOTHROW(nlohmann::json::parse(json.out));
}

TEST_CASE("inspect shows a Hugging Face directory and its quantization") {
  const test_folder folder;
  folder.write("config.json", R"({"model_type":"llama","hidden_size":8,"num_hidden_layers":1,
    "num_attention_heads":2,"intermediate_size":16,"vocab_size":4,"max_position_embeddings":64,
    "quantization_config":{"quant_method":"gptq","bits":4,"group_size":32,"desc_act":false}})");
  folder.write("tokenizer.json", R"({"model":{"type":"BPE","vocab":{"a":0,"b":1}}})");
  folder.write("tokenizer_config.json", R"({"chat_template":"{{x}}"})");
  safetensors_writer w;
  w.tensor("model.norm.weight", "BF16", {8}, std::string(16, '\0'));
  folder.write("model.safetensors", w.file());
  const outcome table = run({"inspect", folder.path()});
  CHECK(table.code == 0);
  CHECK_THAT(table.out, ContainsSubstring("GPTQ, 4-bit integers, groups of 32, symmetric"));
  CHECK_THAT(table.out, ContainsSubstring("BPE, 2 tokens, chat template"));
  CHECK_THAT(table.out, ContainsSubstring("BF16"));
}

TEST_CASE("what cannot be inspected or fetched ends with code 2 and a reason") {
  CHECK(run({"inspect", "/no/such.gguf"}).code == 2);
  CHECK_THAT(run({"inspect", "/no/such.gguf"}).err, ContainsSubstring("error: /no/such.gguf"));
  CHECK(run({"get", "gpt-5"}).code == 2);
  CHECK_THAT(run({"get", "gpt-5"}).err, ContainsSubstring("smollm2"));
  CHECK(run({}).code == 2);
  CHECK(run({"get"}).code == 2);
  CHECK(run({"--help"}).code == 0);
}
