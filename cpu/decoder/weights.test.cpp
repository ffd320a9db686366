// Loading a decoder: what belongs together is found, what is missing is named.
#include "cpu/decoder/weights.hpp"

#include "core/error.hpp"
#include "cpu/test_model.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::cpu;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("what a family has is loaded, and what it lacks is empty") {
  const auto llama = tiny_model{llama_shape(false)}.load();
  REQUIRE(llama->layers.size() == 2);
  CHECK(llama->head.rows() == 64);
  CHECK(&llama->head_weights() == &llama->head);
  for (const layer_weights& layer : llama->layers) {
    CHECK(layer.q.bias.empty());
    CHECK(layer.q_norm.empty());
    CHECK(layer.post_attention_norm.empty());
    CHECK(layer.post_mlp_norm.empty());
    CHECK(layer.k.weight.rows() == 32);
    CHECK(layer.down.weight.columns() == 128);
  }
  const auto qwen = tiny_model{{.architecture = "qwen2", .qkv_bias = true}}.load();
  CHECK(qwen->layers[1].q.bias.size() == 64);
  CHECK(qwen->layers[1].v.bias.size() == 32);
  CHECK(qwen->layers[1].output.bias.empty());
  const auto gemma = tiny_model{gemma_shape()}.load();
  CHECK(&gemma->head_weights() == &gemma->embedding);
  CHECK(gemma->layers[2].k_norm.size() == 16);
  CHECK(gemma->layers[2].post_mlp_norm.size() == 64);
}

TEST_CASE("packed F32 matrices take four bytes a number") {
  // Embedding and head, then q, k, v, output, gate, up and down of two layers.
  const std::size_t numbers = 2 * 64 * 64 + 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 128 * 64);
  CHECK(tiny_model{llama_shape(false)}.load()->bytes() >= 4 * numbers);
  CHECK(tiny_model{llama_shape(false)}.load()->bytes() < 5 * numbers);
}

TEST_CASE("progress is told layer by layer") {
  const tiny_model model{llama_shape(false)};
  thread_pool pool{2};
  std::vector<std::pair<std::size_t, std::size_t>> heard;
  (void)load_decoder(model::checkpoint::open(model.file()), pool,
                     [&](std::size_t done, std::size_t total) { heard.emplace_back(done, total); });
  CHECK(heard == std::vector<std::pair<std::size_t, std::size_t>>{{1, 2}, {2, 2}});
}

TEST_CASE("a weight that is missing is named") {
  thread_pool pool{1};
  for (const std::string name : {"blk.1.ffn_norm", "blk.0.attn_k", "output_norm", "token_embd"}) {
    CAPTURE(name);
    const tiny_model model{{.left_out = name + ".weight"}};
    const auto load = [&] { (void)load_decoder(model::checkpoint::open(model.file()), pool); };
    CHECK_THROWS_AS(load(), input_error);
    CHECK_THROWS_WITH(load(), ContainsSubstring(name));
  }
}

TEST_CASE("an MLP without a gate is refused") {
  const tiny_model model{{.left_out = "blk.0.ffn_gate.weight"}};
  thread_pool pool{1};
  const auto load = [&] { (void)load_decoder(model::checkpoint::open(model.file()), pool); };
  CHECK_THROWS_AS(load(), infeasible_error);
}
