// Reading model shapes: public parameter counts, families, and files to refuse.
#include "model/config.hpp"

#include "core/error.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::string llama_2_7b = R"({"model_type":"llama","hidden_size":4096,
  "num_hidden_layers":32,"num_attention_heads":32,"intermediate_size":11008,
  "vocab_size":32000,"max_position_embeddings":4096,"tie_word_embeddings":false})";

std::string qwen2(const std::string& extra) {
  return R"({"model_type":"qwen2","hidden_size":3584,"num_hidden_layers":28,
    "num_attention_heads":28,"num_key_value_heads":4,"intermediate_size":18944,
    "vocab_size":152064,"max_position_embeddings":32768)" +
         extra + "}";
}

std::string with(const std::string& from, const std::string& to) {
  std::string text = llama_2_7b;
  text.replace(text.find(from), from.size(), to);
  return text;
}

}  // namespace

TEST_CASE("published parameter counts are met exactly") {
  CHECK(parse_config(llama_2_7b, "t").parameters() == 6'738'415'616);
  // Qwen2.5-7B has biases on q, k and v.
  CHECK(parse_config(qwen2(""), "t").parameters() == 7'615'616'512);
}

TEST_CASE("missing key-value heads mean one per query head") {
  CHECK(parse_config(llama_2_7b, "t").kv_heads == 32);
  CHECK(parse_config(llama_2_7b, "t").head_dim == 128);
}

TEST_CASE("Qwen's window counts only when it is switched on") {
  const std::string window = R"(,"sliding_window":4096,"max_window_layers":20)";
  const auto off = parse_config(qwen2(window + R"(,"use_sliding_window":false)"), "t");
  CHECK(off.sliding_layers() == 0);
  CHECK(off.sliding_window == 0);
  const auto on = parse_config(qwen2(window + R"(,"use_sliding_window":true)"), "t");
  CHECK(on.sliding_layers() == 8);
  CHECK_FALSE(on.slides[19]);
  CHECK(on.slides[20]);
}

TEST_CASE("a window without a pattern holds for every layer") {
  const auto config = parse_config(
      with("\"model_type\":\"llama\"", "\"model_type\":\"mistral\",\"sliding_window\":4096"), "t");
  CHECK(config.sliding_layers() == 32);
  CHECK(config.full_layers() == 0);
}

TEST_CASE("a list of layer kinds is followed and checked") {
  const std::string two = R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":2,
    "num_attention_heads":4,"intermediate_size":128,"vocab_size":100,"sliding_window":8,
    "max_position_embeddings":64,"layer_types":)";
  const auto config = parse_config(two + R"(["sliding_attention","full_attention"]})", "t");
  CHECK(config.slides == std::vector<bool>{true, false});
  CHECK_THROWS_WITH(parse_config(two + R"(["full_attention"]})", "t"),
                    ContainsSubstring("one kind for each of the 2 layers"));
  CHECK_THROWS_WITH(parse_config(two + R"(["full_attention","linear_attention"]})", "t"),
                    ContainsSubstring("linear_attention"));
}

TEST_CASE("a nested text_config is read, with its family's defaults") {
  const auto config = parse_config(R"({"model_type":"gemma3","text_config":{
    "hidden_size":5376,"num_hidden_layers":62,"num_attention_heads":32,"head_dim":128,
    "num_key_value_heads":16,"intermediate_size":21504,"sliding_window":1024,
    "model_type":"gemma3_text"},"vision_config":{"hidden_size":1152}})",
                                   "t");
  CHECK(config.tied_embeddings);
  CHECK(config.qk_norm);
  CHECK(config.vocab_size == 262208);
  CHECK(config.sliding_layers() == 52);
  CHECK_FALSE(config.slides[5]);
  // 262208 x 5376 + 62 x (5376 x (2 x 4096 + 2 x 2048) + 3 x 5376 x 21504
  //   + 4 x 5376 + 2 x 128) + 5376
  CHECK(config.parameters() == 27'009'346'304);
}

TEST_CASE("an unknown architecture with the usual fields is read with a note") {
  const auto config = parse_config(with("\"llama\"", "\"newthing\""), "t");
  CHECK(config.parameters() == 6'738'415'616);
  REQUIRE(config.notes.size() == 1);
  CHECK_THAT(config.notes[0], ContainsSubstring("newthing"));
}

TEST_CASE("a missing or wrong field is named") {
  CHECK_THROWS_WITH(parse_config(with("\"vocab_size\":32000,", ""), "m.json"),
                    ContainsSubstring("m.json: field \"vocab_size\" is missing"));
  CHECK_THROWS_WITH(parse_config(with("32000", "\"many\""), "m.json"),
                    ContainsSubstring("field \"vocab_size\" is \"many\""));
  CHECK_THROWS_WITH(parse_config(with("32000", "-1"), "m.json"),
                    ContainsSubstring("field \"vocab_size\" is -1"));
  CHECK_THROWS_WITH(parse_config(with("32000", "18446744073709551615"), "m.json"),
                    ContainsSubstring("vocab_size"));
  CHECK_THROWS_WITH(parse_config(with("\"llama\"", "\"llama\",\"num_key_value_heads\":5"), "t"),
                    ContainsSubstring("does not divide num_attention_heads 32"));
  CHECK_THROWS_AS(parse_config("{", "m.json"), input_error);
  CHECK_THROWS_AS(parse_config("[]", "m.json"), input_error);
  CHECK_THROWS_AS(load_config("/no/such/config.json"), input_error);
}

TEST_CASE("experts, latent attention and encoders are refused by name") {
  for (const std::string field : {"num_local_experts", "n_routed_experts", "kv_lora_rank"}) {
    CHECK_THROWS_WITH(parse_config(with("\"llama\"", "\"llama\",\"" + field + "\":8"), "t"),
                      ContainsSubstring(field));
  }
  CHECK_THROWS_WITH(parse_config(with("\"llama\"", "\"llama\",\"is_encoder_decoder\":true"), "t"),
                    ContainsSubstring("is_encoder_decoder"));
}

TEST_CASE("a dense model may say that it has one expert") {
  CHECK_NOTHROW(parse_config(with("\"llama\"", "\"llama\",\"num_experts\":1"), "t"));
}

TEST_CASE("Gemma 2 slides in every other layer") {
  const auto config = parse_config(R"({"model_type":"gemma2","hidden_size":3584,
    "num_hidden_layers":42,"num_attention_heads":16,"num_key_value_heads":8,"head_dim":256,
    "intermediate_size":14336,"vocab_size":256000,"max_position_embeddings":8192,
    "sliding_window":4096})",
                                   "t");
  CHECK(config.sliding_layers() == 21);
  CHECK(config.slides[0]);
  // Published as 9.24 billion.
  CHECK(config.parameters() == 9'241'705'984);
}

TEST_CASE("tensor parallel sizes that do not divide are refused with the arithmetic") {
  const auto llama = parse_config(with("\"llama\"", "\"llama\",\"num_key_value_heads\":8"), "t");
  CHECK_NOTHROW(check_tensor_parallel(llama, 1));
  CHECK_NOTHROW(check_tensor_parallel(llama, 8));
  CHECK_NOTHROW(check_tensor_parallel(llama, 16));  // heads copied
  CHECK_THROWS_WITH(check_tensor_parallel(llama, 3),
                    ContainsSubstring("32 query heads do not divide by tensor parallel size 3 "
                                      "(32 = 3 x 10 + 2)"));
  CHECK_THROWS_AS(check_tensor_parallel(llama, 3), infeasible_error);
  CHECK_THROWS_AS(check_tensor_parallel(llama, 0), input_error);
  // 28 query heads over 7 GPUs divide; 18,944 MLP columns do not.
  CHECK_THROWS_WITH(check_tensor_parallel(parse_config(qwen2(""), "t"), 7),
                    ContainsSubstring("MLP columns"));
}
