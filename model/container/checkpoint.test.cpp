// One view over GGUF files and Hugging Face directories.
#include "model/container/checkpoint.hpp"

#include "core/error.hpp"
#include "model/container/gguf_writer.hpp"
#include "model/container/safetensors_writer.hpp"
#include "model/container/tensor_names.hpp"
#include "model/container/test_files.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;
using Catch::Matchers::ContainsSubstring;

namespace {

/// `count` floats: first, first + 1, …
std::string floats(float first, std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) {
    bytes += gguf_writer::raw(first + static_cast<float>(i));
  }
  return bytes;
}

std::string config_json(const std::string& extra) {
  return R"({"model_type":"llama","hidden_size":8,"num_hidden_layers":1,"num_attention_heads":2,
    "intermediate_size":16,"vocab_size":4,"max_position_embeddings":64,"eos_token_id":[2,3],
    "bos_token_id":1)" +
         extra + "}";
}

safetensors_writer embedding_and_norm() {
  safetensors_writer w;
  w.tensor("model.embed_tokens.weight", "F32", {4, 8}, floats(0, 32));
  w.tensor("model.layers.0.input_layernorm.weight", "F32", {8}, floats(1, 8));
  return w;
}

void refused(const std::string& path, const std::string& message) {
  CHECK_THROWS_AS(checkpoint::open(path), input_error);
  CHECK_THROWS_WITH(checkpoint::open(path), ContainsSubstring(message));
}

}  // namespace

TEST_CASE("Hugging Face names map onto one naming") {
  const auto plain = [](std::string_view name) { return canonical_tensor_name(name, false); };
  CHECK(plain("model.embed_tokens.weight") == "token_embd.weight");
  CHECK(plain("model.norm.weight") == "output_norm.weight");
  CHECK(plain("lm_head.weight") == "output.weight");
  CHECK(plain("model.layers.10.self_attn.q_proj.weight") == "blk.10.attn_q.weight");
  CHECK(plain("model.layers.0.self_attn.k_proj.bias") == "blk.0.attn_k.bias");
  CHECK(plain("model.layers.0.mlp.down_proj.qweight") == "blk.0.ffn_down.qweight");
  CHECK(plain("model.layers.0.self_attn.q_norm.weight") == "blk.0.attn_q_norm.weight");
  CHECK(plain("model.layers.0.post_attention_layernorm.weight") == "blk.0.ffn_norm.weight");
  CHECK(canonical_tensor_name("model.layers.0.post_attention_layernorm.weight", true) ==
        "blk.0.post_attention_norm.weight");
  CHECK(canonical_tensor_name("model.layers.0.pre_feedforward_layernorm.weight", true) ==
        "blk.0.ffn_norm.weight");
  CHECK(plain("language_model.model.layers.3.mlp.up_proj.weight") == "blk.3.ffn_up.weight");
  CHECK(plain("model.language_model.layers.3.mlp.up_proj.weight") == "blk.3.ffn_up.weight");
  CHECK(plain("language_model.lm_head.weight") == "output.weight");
  for (const char* foreign :
       {"vision_tower.encoder.layers.0.mlp.fc1.weight", "model.layers.0.self_attn.rotary_emb.inv",
        "model.layers.x.mlp.up_proj.weight", "model.layers.007.mlp.up_proj.weight", "weight", ""}) {
    CHECK(plain(foreign).empty());
  }
}

TEST_CASE("a directory and a GGUF file of one model give the same values") {
  const test_folder folder;
  folder.write("config.json", config_json(R"(,"tie_word_embeddings":true)"));
  folder.write("model.safetensors", embedding_and_norm().file());
  gguf_writer w;
  w.text("general.architecture", "qwen2").u32("qwen2.embedding_length", 8);
  w.u32("qwen2.block_count", 1).u32("qwen2.attention.head_count", 2);
  w.u32("qwen2.feed_forward_length", 16).u32("qwen2.context_length", 64);
  w.f32("qwen2.attention.layer_norm_rms_epsilon", 1e-6F);
  w.u32("tokenizer.ggml.eos_token_id", 2).u32("tokenizer.ggml.eot_token_id", 3);
  w.u32("tokenizer.ggml.bos_token_id", 1);
  w.tensor("token_embd.weight", 0, {8, 4}, floats(0, 32));
  w.tensor("blk.0.attn_norm.weight", 0, {8}, floats(1, 8));
  const std::string gguf_path = folder.write("model.gguf", w.file());

  for (const std::string& path : {folder.path(), gguf_path}) {
    INFO(path);
    const checkpoint model = checkpoint::open(path);
    CHECK(model.config().hidden_size == 8);
    CHECK(model.config().vocab_size == 4);
    CHECK(model.config().tied_embeddings);
    CHECK(model.generation().stop_tokens == std::vector<std::int64_t>{2, 3});
    CHECK(model.generation().bos_token == 1);
    CHECK(model.tensor_bytes() == 32 * 4 + 8 * 4);
    const weight_matrix embedding = model.matrix("token_embd", 4, 8);
    std::vector<float> row(8);
    dequantize_row(embedding, 3, row);
    CHECK(row.front() == 24);
    CHECK(model.vector("blk.0.attn_norm.weight", 8).back() == 8);
    model.done_with(*model.find("token_embd.weight"));
    dequantize_row(embedding, 3, row);
    CHECK(row.back() == 31);
    CHECK_FALSE(model.has_matrix("output"));
    CHECK_THROWS_WITH(model.matrix("blk.0.attn_q"),
                      ContainsSubstring("\"blk.0.attn_q\" is missing"));
    CHECK_THROWS_WITH(
        model.matrix("token_embd", 4, 9),
        ContainsSubstring("has 4 outputs and 8 inputs; the configuration needs 4 and 9"));
    CHECK_THROWS_WITH(model.vector("blk.0.attn_norm.weight", 9),
                      ContainsSubstring("[9] is expected"));
    CHECK_THROWS_WITH(model.vector("x", 9), ContainsSubstring("\"x\" is missing"));
  }
}

TEST_CASE("a directory without an output head uses the embedding, and says so") {
  const test_folder folder;
  folder.write("config.json", config_json(R"(,"tie_word_embeddings":false)"));
  folder.write("model.safetensors", embedding_and_norm().file());
  const checkpoint model = checkpoint::open(folder.path());
  CHECK(model.config().tied_embeddings);
  REQUIRE_FALSE(model.config().notes.empty());
  CHECK_THAT(model.config().notes.back(), ContainsSubstring("the embedding is used"));
}

TEST_CASE("companions are found beside config.json") {
  const test_folder folder;
  folder.write("config.json", config_json(""));
  folder.write("model.safetensors", embedding_and_norm().file());
  folder.write("tokenizer.json", "{}");
  folder.write("generation_config.json", R"({"eos_token_id":7,"temperature":0.6,"top_k":20})");
  const checkpoint model = checkpoint::open(folder.path());
  CHECK(model.companion("tokenizer.json") == folder.path() + "/tokenizer.json");
  CHECK(model.companion("nothing.json").empty());
  CHECK(model.generation().stop_tokens == std::vector<std::int64_t>{7});
  CHECK(model.generation().bos_token == 1);
  CHECK(model.generation().temperature == 0.6);
  CHECK(model.generation().top_k == 20);
  folder.write("generation_config.json", R"({"eos_token_id":"7"})");
  refused(folder.path(), "generation_config.json: field \"eos_token_id\" holds \"7\"");
}

TEST_CASE("shards must be whole and agree with their index") {
  const test_folder folder;
  folder.write("config.json", config_json(""));
  const auto index = [&](const std::string& second) {
    folder.write("model.safetensors.index.json",
                 R"({"weight_map":{"model.embed_tokens.weight":"a.safetensors",)" + second + "}}");
  };
  safetensors_writer a;
  safetensors_writer b;
  a.tensor("model.embed_tokens.weight", "F32", {4, 8}, floats(0, 32));
  b.tensor("model.norm.weight", "F32", {8}, floats(0, 8));
  folder.write("a.safetensors", a.file());
  folder.write("b.safetensors", b.file());
  index(R"("model.norm.weight":"b.safetensors")");
  CHECK(checkpoint::open(folder.path()).tensors().size() == 2);
  index(R"("model.norm.weight":"c.safetensors")");
  refused(folder.path(), "c.safetensors: cannot be opened");
  index(R"("model.norm.weight":"a.safetensors")");
  refused(folder.path(), "\"model.norm.weight\" is not in a.safetensors");
  index(R"("model.norm.weight":"b.safetensors","lm_head.weight":"b.safetensors")");
  refused(folder.path(), "\"lm_head.weight\" is not in b.safetensors");
  // A tensor in two shards: one of them is not where the index says.
  index(R"("model.norm.weight":"b.safetensors")");
  folder.write("b.safetensors", b.tensor("model.embed_tokens.weight", "F32", {1}, "1234").file());
  refused(folder.path(), "\"model.embed_tokens.weight\" does not lie here");
  // The last four bytes of a shard are gone.
  const std::string whole = a.file();
  folder.write("a.safetensors", whole.substr(0, whole.size() - 4));
  refused(folder.path(), "it is cut short");
}

TEST_CASE("quantized weights are read as their configuration says") {
  const test_folder folder;
  const std::string awq =
      R"({"quant_method":"awq","bits":4,"group_size":-1,"zero_point":true,"version":"gemm"})";
  folder.write("config.json", config_json(R"(,"quantization_config":)" + awq));
  safetensors_writer w = embedding_and_norm();
  std::string words;
  for (int k = 0; k < 8; ++k) words += gguf_writer::raw(0x75316420U);
  std::string halves;
  for (int n = 0; n < 8; ++n) halves += gguf_writer::raw<std::uint16_t>(0x3800);
  const std::string q = "model.layers.0.self_attn.q_proj.";
  w.tensor(q + "qweight", "I32", {8, 1}, words);
  w.tensor(q + "qzeros", "I32", {1, 1}, gguf_writer::raw(0x88888888U));
  w.tensor(q + "scales", "F16", {1, 8}, halves);
  folder.write("model.safetensors", w.file());
  const checkpoint model = checkpoint::open(folder.path());
  CHECK(model.quantization().method == quantization_method::awq);
  const weight_matrix matrix = model.matrix("blk.0.attn_q", 8, 8);
  std::vector<float> row(8);
  dequantize_row(matrix, 3, row);
  CHECK(row == std::vector<float>(8, -2.5F));
  // Without the configuration nobody knows what the words mean.
  folder.write("config.json", config_json(""));
  CHECK_THROWS_WITH(checkpoint::open(folder.path()).matrix("blk.0.attn_q"),
                    ContainsSubstring("no configuration says how"));
  folder.write("quant_config.json", R"({"w_bit":4,"q_group_size":-1,"zero_point":true})");
  CHECK_NOTHROW(checkpoint::open(folder.path()).matrix("blk.0.attn_q", 8, 8));
}

TEST_CASE("paths that are no model are refused with what is expected") {
  const test_folder folder;
  refused("/no/such/model.gguf", "/no/such/model.gguf: cannot be opened");
  refused(folder.path(), "has no config.json");
  folder.write("config.json", config_json(""));
  refused(folder.path(), "has neither model.safetensors nor");
  refused(folder.write("x.safetensors", "x"), "give the directory");
  refused(folder.write("x.bin", "hello world"), "magic is not \"GGUF\"");
}
