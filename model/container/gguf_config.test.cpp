// Models described by GGUF metadata: each architecture, and what is refused.
#include "model/container/gguf_config.hpp"

#include <cmath>

#include "core/error.hpp"
#include "model/container/gguf_writer.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;
using Catch::Matchers::ContainsSubstring;

namespace {

/// The keys that every architecture needs: width 64, 2 layers, 4 heads.
gguf_writer described(const std::string& arch) {
  gguf_writer w;
  w.text("general.architecture", arch).u32(arch + ".embedding_length", 64);
  w.u32(arch + ".block_count", 2).u32(arch + ".attention.head_count", 4);
  w.u32(arch + ".feed_forward_length", 128).u32(arch + ".context_length", 2048);
  w.f32(arch + ".attention.layer_norm_rms_epsilon", 1e-5F);
  w.texts("tokenizer.ggml.tokens", {"a", "b", "c"});
  return w;
}

model_config read(const gguf_writer& writer) {
  const std::string bytes = writer.file();
  return gguf_model_config(parse_gguf(as_bytes(bytes), "m.gguf"));
}

void refused(const gguf_writer& writer, const std::string& message) {
  CHECK_THROWS_AS(read(writer), input_error);
  CHECK_THROWS_WITH(read(writer), ContainsSubstring("m.gguf") && ContainsSubstring(message));
}

gguf_writer& zeros(gguf_writer& w, const std::string& name, std::vector<std::uint64_t> dims) {
  std::uint64_t count = 1;
  for (const auto size : dims) count *= size;
  return w.tensor(name, 0, dims, std::string(count * 4, '\0'));
}

}  // namespace

TEST_CASE("a Llama is described by its keys, rows rotated in neighbouring pairs") {
  gguf_writer w = described("llama");
  w.u32("llama.attention.head_count_kv", 2).f32("llama.rope.freq_base", 500'000);
  const auto config = read(w);
  CHECK(config.family == "llama");
  CHECK(config.hidden_size == 64);
  CHECK(config.layers == 2);
  CHECK(config.heads == 4);
  CHECK(config.kv_heads == 2);
  CHECK(config.head_dim == 16);
  CHECK(config.intermediate_size == 128);
  CHECK(config.vocab_size == 3);
  CHECK(config.max_positions == 2048);
  CHECK(config.rope.interleaved);
  CHECK(config.rope.theta == 500'000);
  CHECK(config.norm_epsilon == Catch::Approx(1e-5));
  CHECK(config.tied_embeddings);
  CHECK(config.sliding_layers() == 0);
}

TEST_CASE("tensors decide the vocabulary, heads, biases and norms") {
  gguf_writer w = described("qwen2");
  zeros(w, "token_embd.weight", {64, 7});
  zeros(w, "output.weight", {64, 7});
  zeros(w, "blk.0.attn_q.bias", {64});
  zeros(w, "blk.0.ffn_gate.weight", {64, 128});
  const auto config = read(w);
  CHECK(config.vocab_size == 7);
  CHECK_FALSE(config.tied_embeddings);
  CHECK(config.qkv_bias);
  CHECK_FALSE(config.output_bias);
  CHECK_FALSE(config.qk_norm);
  CHECK_FALSE(config.rope.interleaved);
  gguf_writer other = described("qwen3");
  zeros(other, "token_embd.weight", {32, 7});
  refused(other, "\"token_embd.weight\" has dims [32, 7]");
}

TEST_CASE("Gemma 3 slides in five layers of six, with a base of their own") {
  gguf_writer w;
  w.text("general.architecture", "gemma3").u32("gemma3.embedding_length", 640);
  w.u32("gemma3.block_count", 18).u32("gemma3.attention.head_count", 4);
  w.u32("gemma3.attention.head_count_kv", 1).u32("gemma3.attention.key_length", 256);
  w.u32("gemma3.attention.value_length", 256).u32("gemma3.feed_forward_length", 2048);
  w.u32("gemma3.context_length", 32'768).f32("gemma3.attention.layer_norm_rms_epsilon", 1e-6F);
  w.f32("gemma3.rope.freq_base", 1e6F).u32("gemma3.attention.sliding_window", 512);
  w.texts("tokenizer.ggml.tokens", {"a"});
  const auto config = read(w);
  CHECK(config.family == "gemma3_text");
  CHECK(config.head_dim == 256);
  CHECK(config.sliding_window == 512);
  CHECK(config.sliding_layers() == 15);
  CHECK_FALSE(config.slides[5]);
  CHECK(config.rope.theta == 1e6);
  CHECK(config.rope.local_theta == 10'000);
  CHECK(config.attention_scale == 1.0 / 16);
  CHECK(config.embedding_scale == Catch::Approx(25.298221281347036));
  CHECK(config.mlp_activation == activation::gelu_tanh);
  // Converters have added the one already.
  CHECK_FALSE(config.norm_adds_one);
  CHECK(config.final_soft_cap == 0);
}

TEST_CASE("Gemma 3 27B scales attention by the model's width over its heads") {
  gguf_writer w;
  w.text("general.architecture", "gemma3").u32("gemma3.embedding_length", 5376);
  w.u32("gemma3.block_count", 62).u32("gemma3.attention.head_count", 32);
  w.u32("gemma3.attention.key_length", 128).u32("gemma3.feed_forward_length", 21'504);
  w.u32("gemma3.context_length", 131'072).u32("gemma3.vocab_size", 262'208);
  w.f32("gemma3.attention.layer_norm_rms_epsilon", 1e-6F).f32("gemma3.rope.freq_base_swa", 2e4F);
  const auto config = read(w);
  CHECK(config.attention_scale == Catch::Approx(std::pow(168.0, -0.5)));
  CHECK(config.vocab_size == 262'208);
  CHECK(config.rope.local_theta == 2e4);
}

TEST_CASE("rotation is scaled by keys, by an old key, or by a tensor") {
  gguf_writer yarn = described("qwen2");
  yarn.text("qwen2.rope.scaling.type", "yarn").f32("qwen2.rope.scaling.factor", 4);
  yarn.u32("qwen2.rope.scaling.original_context_length", 32'768);
  const auto config = read(yarn);
  CHECK(config.rope.scaling == rope_scaling::yarn);
  CHECK(config.rope.factor == 4);
  CHECK(config.rope.original_positions == 32'768);
  gguf_writer older = described("llama");
  older.f32("llama.rope.scale_linear", 2);
  CHECK(read(older).rope.scaling == rope_scaling::linear);
  CHECK(read(older).rope.factor == 2);
  gguf_writer divided = described("llama");
  std::string divisors;
  for (int i = 0; i < 8; ++i) divisors += gguf_writer::raw(static_cast<float>(i + 1));
  divided.tensor("rope_freqs.weight", 0, {8}, divisors);
  CHECK(read(divided).rope.divisors == std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
  gguf_writer zero = described("llama");
  refused(zeros(zero, "rope_freqs.weight", {8}), "not above 0");
  gguf_writer wrong = described("llama");
  refused(zeros(wrong, "rope_freqs.weight", {4}), "must hold 8 F32 numbers");
  gguf_writer odd = described("llama");
  refused(odd.u32("llama.rope.dimension_count", 17), "rope.dimension_count");
}

TEST_CASE("sizes given once per layer count if they agree") {
  gguf_writer w = described("llama");
  w.numbers<std::uint32_t>("llama.attention.head_count_kv", 4, {2, 2});
  CHECK(read(w).kv_heads == 2);
  gguf_writer unequal = described("llama");
  unequal.numbers<std::uint32_t>("llama.attention.head_count_kv", 4, {2, 1});
  refused(unequal, "differs between layers");
}

TEST_CASE("windows follow a list of layers where there is one") {
  gguf_writer w = described("mistral");
  w.u32("mistral.attention.sliding_window", 8);
  w.numbers<std::uint8_t>("mistral.attention.sliding_window_pattern", 7, {1, 0});
  CHECK(read(w).slides == std::vector<bool>{true, false});
  gguf_writer all = described("mistral");
  all.u32("mistral.attention.sliding_window", 8);
  CHECK(read(all).sliding_layers() == 2);
  gguf_writer three = described("mistral");
  three.u32("mistral.attention.sliding_window", 8);
  three.numbers<std::uint8_t>("mistral.attention.sliding_window_pattern", 7, {1, 0, 1});
  refused(three, "one bool for each of the 2 layers");
}

TEST_CASE("models that cannot be run are refused by key") {
  refused(described("rwkv"), "general.architecture\" is \"rwkv\"; supported are llama");
  refused(gguf_writer().u32("general.architecture", 1), "general.architecture");
  refused(gguf_writer().text("general.architecture", "llama"),
          "llama.embedding_length\" is missing");
  gguf_writer experts = described("llama");
  refused(experts.u32("llama.expert_count", 8), "mixture of experts");
  gguf_writer parts = described("llama");
  refused(parts.key("split.count", 2, gguf_writer::raw<std::uint16_t>(3)), "one part of several");
  gguf_writer heads = described("llama");
  refused(heads.u32("llama.attention.head_count_kv", 3), "does not divide the 4 heads");
  gguf_writer values = described("llama");
  refused(values.u32("llama.attention.value_length", 8), "value_length");
}
