// What a forward pass needs, read from config.json files of each family.
#include "model/config_decoder.hpp"

#include <cmath>

#include "core/error.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;
using Catch::Matchers::ContainsSubstring;

namespace {

model_config read(const std::string& family, const std::string& extra) {
  return parse_config(R"({"hidden_size":1152,"num_hidden_layers":12,"num_attention_heads":4,
    "num_key_value_heads":1,"head_dim":256,"intermediate_size":6912,"vocab_size":1000,
    "max_position_embeddings":131072,"model_type":")" +
                          family + "\"" + extra + "}",
                      "c.json");
}

}  // namespace

TEST_CASE("a plain Llama turns by 10,000 and gates with SiLU") {
  const auto config = read("llama", R"(,"rms_norm_eps":1e-5,"hidden_act":"silu")");
  CHECK(config.rope.theta == 10'000);
  CHECK(config.rope.scaling == rope_scaling::none);
  CHECK_FALSE(config.rope.interleaved);
  CHECK(config.norm_epsilon == 1e-5);
  CHECK_FALSE(config.norm_adds_one);
  CHECK(config.mlp_activation == activation::silu);
  CHECK(config.embedding_scale == 1);
}

TEST_CASE("Llama 3.1's stretched rotation is read in both spellings") {
  const std::string fields = R"("factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,
    "original_max_position_embeddings":8192)";
  const auto older = read(
      "llama", R"(,"rope_theta":500000.0,"rope_scaling":{"rope_type":"llama3",)" + fields + "}");
  const auto newer = read(
      "llama", R"(,"rope_parameters":{"rope_type":"llama3","rope_theta":500000.0,)" + fields + "}");
  for (const auto& rope : {older.rope, newer.rope}) {
    CHECK(rope.theta == 500'000);
    CHECK(rope.scaling == rope_scaling::llama3);
    CHECK(rope.factor == 8);
    CHECK(rope.low_frequency_factor == 1);
    CHECK(rope.high_frequency_factor == 4);
    CHECK(rope.original_positions == 8192);
  }
}

TEST_CASE("yarn's attention factor may come from two mscale fields") {
  const auto plain = read("qwen2", R"(,"rope_scaling":{"type":"yarn","factor":4.0,
    "original_max_position_embeddings":32768})");
  CHECK(plain.rope.scaling == rope_scaling::yarn);
  CHECK(plain.rope.attention_factor == 0);
  CHECK(plain.rope.truncate);
  const auto scaled = read("qwen2", R"(,"rope_scaling":{"type":"yarn","factor":40.0,"mscale":1.0,
    "mscale_all_dim":0.5})");
  const double log40 = std::log(40.0);
  CHECK(scaled.rope.attention_factor == Catch::Approx((0.1 * log40 + 1) / (0.05 * log40 + 1)));
}

TEST_CASE("a scaling that cannot be run is kept by name") {
  const auto config = read("llama", R"(,"rope_scaling":{"type":"dynamic","factor":2.0})");
  CHECK(config.rope.scaling == rope_scaling::other);
  CHECK(config.rope.scaling_name == "dynamic");
}

TEST_CASE("Gemma 3 has two bases, scaled embeddings and its own attention scale") {
  const auto config = read("gemma3_text", R"(,"rope_theta":1000000.0,"rope_local_base_freq":10000.0,
    "rope_scaling":{"rope_type":"linear","factor":8.0},"query_pre_attn_scalar":168,
    "sliding_window":512,"final_logit_softcapping":null)");
  CHECK(config.rope.theta == 1e6);
  CHECK(config.rope.local_theta == 10'000);
  CHECK(config.rope.scaling == rope_scaling::linear);
  CHECK(config.rope.factor == 8);
  CHECK(config.norm_adds_one);
  CHECK(config.mlp_activation == activation::gelu_tanh);
  CHECK(config.embedding_scale == Catch::Approx(33.9411254969543));
  CHECK(config.attention_scale == Catch::Approx(0.0771516749810460));
  CHECK(config.attention_soft_cap == 0);
  CHECK(config.final_soft_cap == 0);
  const auto newer = read("gemma3_text", R"(,"sliding_window":512,"rope_parameters":{
    "full_attention":{"rope_type":"default","rope_theta":2000000.0},
    "sliding_attention":{"rope_type":"default","rope_theta":20000.0}})");
  CHECK(newer.rope.theta == 2e6);
  CHECK(newer.rope.local_theta == 20'000);
}

TEST_CASE("Gemma 2 caps scores and logits unless its file says null") {
  const auto silent = read("gemma2", "");
  CHECK(silent.attention_soft_cap == 50);
  CHECK(silent.final_soft_cap == 30);
  CHECK(silent.attention_scale == 1.0 / 16);
  const auto none =
      read("gemma2", R"(,"attn_logit_softcapping":null,"final_logit_softcapping":20)");
  CHECK(none.attention_soft_cap == 0);
  CHECK(none.final_soft_cap == 20);
}

TEST_CASE("ill-typed or senseless fields are refused by name") {
  CHECK_THROWS_WITH(read("llama", R"(,"rope_theta":"big")"),
                    ContainsSubstring("c.json: field \"rope_theta\" is \"big\""));
  CHECK_THROWS_WITH(read("llama", R"(,"rope_theta":0)"), ContainsSubstring("must be above 0"));
  CHECK_THROWS_WITH(read("llama", R"(,"rms_norm_eps":-1)"), ContainsSubstring("rms_norm_eps"));
  CHECK_THROWS_WITH(read("llama", R"(,"rope_scaling":[])"), ContainsSubstring("rope_scaling"));
  CHECK_THROWS_WITH(read("llama", R"(,"rope_scaling":{"type":"linear","factor":0})"),
                    ContainsSubstring("(rope_scaling): field \"factor\" is 0"));
  CHECK_THROWS_WITH(read("llama", R"(,"partial_rotary_factor":2)"), ContainsSubstring("exceeds 1"));
}
