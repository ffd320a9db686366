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
  CHECK(llama->ranks() == 1);
  CHECK(llama->head[0].rows() == 64);
  CHECK(&llama->head_weights() == &llama->head);
  for (const layer_weights& layer : llama->layers) {
    CHECK(layer.ranks[0].q.bias.empty());
    CHECK(layer.q_norm.empty());
    CHECK(layer.post_attention_norm.empty());
    CHECK(layer.post_mlp_norm.empty());
    CHECK(layer.ranks[0].k.weight.rows() == 32);
    CHECK(layer.ranks[0].down.weight.columns() == 128);
  }
  const auto qwen = tiny_model{{.architecture = "qwen2", .qkv_bias = true}}.load();
  CHECK(qwen->layers[1].ranks[0].q.bias.size() == 64);
  CHECK(qwen->layers[1].ranks[0].v.bias.size() == 32);
  CHECK(qwen->layers[1].ranks[0].output.bias.empty());
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

TEST_CASE("ranks share outputs, inputs and tokens, and rank 0 adds the biases of sums") {
  const tiny_model model{{.qkv_bias = true, .heads = 8, .output_bias = true, .tokens = 61}};
  const auto whole = model.load();
  const auto cut = model.load(4);
  REQUIRE(cut->ranks() == 4);
  REQUIRE(cut->layers[1].ranks.size() == 4);
  const rank_weights& all = whole->layers[1].ranks[0];
  std::vector<float> full(128);
  for (std::size_t r = 0; r < 4; ++r) {
    CAPTURE(r);
    const rank_weights& rank = cut->layers[1].ranks[r];
    CHECK(rank.q.weight.rows() == 32);
    CHECK(rank.q.bias ==
          std::vector(all.q.bias.begin() + r * 32, all.q.bias.begin() + r * 32 + 32));
    // Two key-value heads, each on two ranks.
    CHECK(rank.k.weight.rows() == 16);
    CHECK(rank.v.bias ==
          std::vector(all.v.bias.begin() + r / 2 * 16, all.v.bias.begin() + r / 2 * 16 + 16));
    CHECK(rank.output.bias.size() == (r == 0 ? 64 : 0));
    CHECK(rank.down.bias == (r == 0 ? all.down.bias : std::vector<float>{}));
    CHECK(cut->head[r].rows() == (r < 3 ? 16 : 13));
    std::vector<float> part(32);
    rank.down.weight.read_row(5, part);
    all.down.weight.read_row(5, full);
    CHECK(part == std::vector(full.begin() + r * 32, full.begin() + r * 32 + 32));
  }
}

TEST_CASE("ranks that cannot share a model are refused with the arithmetic") {
  thread_pool pool{1};
  const auto refused = [&](const tiny_shape& shape, int ranks, const std::string& message) {
    const tiny_model model{shape};
    const auto load = [&] {
      (void)load_decoder(model::checkpoint::open(model.file()), pool, {}, ranks);
    };
    CHECK_THROWS_AS(load(), infeasible_error);
    CHECK_THROWS_WITH(load(), ContainsSubstring(message));
  };
  refused(llama_shape(false), 3,
          "4 query heads do not divide by tensor parallel size 3 (4 = 3 x 1 + 1); allowed sizes: "
          "1, 2, 4");
  // 128 inputs to 8 ranks are 16 to each, half a block of Q8_0.
  refused({.quantized = true, .heads = 16}, 8,
          "blk.0.ffn_down: a cut at input 16 would split a Q8_0 block of 32 (16 = 0 x 32 + 16); "
          "allowed sizes for 128 inputs: 1, 2, 4");
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
