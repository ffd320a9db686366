// Memory arithmetic against values worked out by hand.
#include "model/kv_arithmetic.hpp"

#include "core/error.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;
using Catch::Matchers::ContainsSubstring;

namespace {

model_config llama_2_7b() {
  return parse_config(R"({"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,
    "num_attention_heads":32,"num_key_value_heads":32,"intermediate_size":11008,
    "vocab_size":32000,"max_position_embeddings":4096,"name":"llama-2-7b"})",
                      "test");
}

model_config llama_31_8b() {
  return parse_config(R"({"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,
    "num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,
    "vocab_size":128256,"max_position_embeddings":131072})",
                      "test");
}

model_config gemma_3_27b() {
  return parse_config(R"({"model_type":"gemma3","text_config":{"model_type":"gemma3_text",
    "hidden_size":5376,"num_hidden_layers":62,"num_attention_heads":32,
    "num_key_value_heads":16,"head_dim":128,"intermediate_size":21504,"sliding_window":1024}})",
                      "test");
}

}  // namespace

TEST_CASE("a token's KV takes 2 x heads x head_dim x bytes in each layer") {
  CHECK(kv_bytes_per_token(llama_2_7b(), kv_dtype::fp16, 1) == 524288);
  CHECK(kv_bytes_per_token(llama_31_8b(), kv_dtype::fp16, 1) == 131072);
  CHECK(kv_bytes_per_token(llama_31_8b(), kv_dtype::fp8, 1) == 65536);
  // 4 heads of 128 bytes and a scale of 2, K and V, 32 layers.
  CHECK(kv_bytes_per_token(llama_31_8b(), kv_dtype::int8, 2) == 33280);
}

TEST_CASE("KV heads are copied where there are more GPUs than heads") {
  // 8 heads over 16 GPUs: one head each, 2 x 1 x 128 x 2 bytes x 32 layers.
  CHECK(kv_bytes_per_token(llama_31_8b(), kv_dtype::fp16, 8) == 16384);
  CHECK(kv_bytes_per_token(llama_31_8b(), kv_dtype::fp16, 16) == 16384);
}

TEST_CASE("sliding layers keep no more than their window") {
  const model_config gemma = gemma_3_27b();
  // 10 full and 52 sliding layers, 2 x 16 x 128 x 2 = 8192 bytes each.
  REQUIRE(gemma.full_layers() == 10);
  REQUIRE(gemma.sliding_layers() == 52);
  CHECK(kv_bytes_per_token_layer(gemma, kv_dtype::fp16, 1) == 8192);
  CHECK(kv_bytes_at(gemma, kv_dtype::fp16, 1, 1000) == 62LL * 8192 * 1000);
  CHECK(kv_bytes_at(gemma, kv_dtype::fp16, 1, 32768) == 8192LL * (10 * 32768 + 52 * 1024));
}

TEST_CASE("a hybrid model has one pool and a group per kind of layer") {
  // gcd(10, 52) = 2 layers a pool block: 2 x 16 tokens x 8192 bytes.
  const kv_layout layout = make_kv_layout(gemma_3_27b(), kv_dtype::fp16, 1, 16);
  CHECK(layout.block_bytes == 262144);
  REQUIRE(layout.groups.size() == 2);
  CHECK(layout.groups[0].pool_blocks == 5);
  CHECK(layout.groups[1].pool_blocks == 26);
  CHECK(layout.groups[1].window == 1024);
  // 32,768 tokens: 2,048 spans x 5 and 64 spans x 26; exactly the bytes above.
  CHECK(pool_blocks_at(layout, 32768) == 2048 * 5 + 64 * 26);
  CHECK(pool_blocks_at(layout, 32768) * layout.block_bytes ==
        kv_bytes_at(gemma_3_27b(), kv_dtype::fp16, 1, 32768));
  // 1,030 tokens: the window starts at token 6, inside block 0, which stays.
  CHECK(pool_blocks_at(layout, 1030) == 65 * 5 + 65 * 26);
}

TEST_CASE("a plain model has one group of one block") {
  const kv_layout layout = make_kv_layout(llama_31_8b(), kv_dtype::fp16, 1, 16);
  CHECK(layout.block_bytes == 16 * 131072);
  REQUIRE(layout.groups.size() == 1);
  CHECK(pool_blocks_at(layout, 17) == 2);
  CHECK_THROWS_AS(make_kv_layout(llama_31_8b(), kv_dtype::fp16, 1, 0), input_error);
}

TEST_CASE("weights in 16 bits are two bytes a parameter") {
  CHECK(weight_bytes(llama_2_7b(), weight_format::fp16, 1).total() == 2 * 6'738'415'616);
  CHECK(weight_bytes(llama_31_8b(), weight_format::fp16, 1).total() == 2 * 8'030'261'248);
}

TEST_CASE("int4 pays 20 bits for each group of 128 weights") {
  // 4096 x 1024: half a byte each, 32 x 1024 groups of 2.5 bytes.
  CHECK(matrix_bytes(4096, 1024, weight_format::int4) == 2097152 + 81920);
  CHECK(matrix_bytes(4096, 1024, weight_format::fp8) == 4194304 + 4096);
  // Llama-2-7B: 6,476,005,376 linear weights x (0.5 + 2.5/128) bytes, and
  // 2 x 32000 x 4096 table entries and 65 norms of 4096 in 16 bits.
  const weight_memory memory = weight_bytes(llama_2_7b(), weight_format::int4, 1);
  CHECK(memory.linear == 6'476'005'376 / 2 + 6'476'005'376 / 128 * 5 / 2);
  CHECK(memory.embeddings == 524'288'000);
  CHECK(memory.small == 2 * 65 * 4096);
}

TEST_CASE("tensor parallelism splits weights and copies norms") {
  const weight_memory one = weight_bytes(llama_31_8b(), weight_format::fp16, 1);
  const weight_memory four = weight_bytes(llama_31_8b(), weight_format::fp16, 4);
  CHECK(four.linear * 4 == one.linear);
  CHECK(four.embeddings * 4 == one.embeddings);
  CHECK(four.small == one.small);
  CHECK_THROWS_AS(weight_bytes(llama_31_8b(), weight_format::fp16, 3), infeasible_error);
}

TEST_CASE("KV blocks are what memory leaves, and the sum is shown") {
  // 80e9 x 0.9 - 16e9 - 2e9 = 54e9; / 2,097,152 = 25,749.2.
  const kv_block_budget budget =
      kv_blocks(80'000'000'000, 0.9, 16'000'000'000, 2'000'000'000, 2'097'152);
  CHECK(budget.blocks == 25749);
  CHECK_THAT(budget.arithmetic, ContainsSubstring("80.00 GB x 0.9 - 16.00 GB weights"));
  CHECK_THAT(budget.arithmetic, ContainsSubstring("= 25749 blocks"));
}

TEST_CASE("a model that leaves no room is refused with the arithmetic") {
  CHECK_THROWS_AS(kv_blocks(24'000'000'000, 0.9, 140'000'000'000, 0, 1), infeasible_error);
  CHECK_THROWS_WITH(kv_blocks(24'000'000'000, 0.9, 140'000'000'000, 0, 1),
                    ContainsSubstring("24.00 GB x 0.9 - 140.00 GB weights"));
  CHECK_THROWS_AS(kv_blocks(24'000'000'000, 1.5, 1, 0, 1), input_error);
  CHECK_THROWS_AS(kv_blocks(24'000'000'000, 0.9, 1, 0, 0), input_error);
}

TEST_CASE("the activation estimate stands near a measured one") {
  // A real engine on a 25,250,627,584-byte GPU at 0.9 with Llama-3.1-8B, 2,048
  // tokens and 256 sequences found room for 2,588 blocks of 16: what was neither
  // weights nor KV came to 1.238 GB.
  const std::int64_t peak = activation_peak_bytes(llama_31_8b(), 1, 2048, 256);
  CHECK(static_cast<double>(peak) == Catch::Approx(1.238e9).epsilon(0.1));
}

TEST_CASE("formats are known by the names that engines use") {
  CHECK(parse_weight_format("awq") == weight_format::int4);
  CHECK(parse_weight_format("auto") == weight_format::fp16);
  CHECK(parse_kv_dtype("fp8_e4m3") == kv_dtype::fp8);
  CHECK_THROWS_WITH(parse_kv_dtype("fp4"), ContainsSubstring("unknown KV dtype \"fp4\""));
  CHECK_THROWS_AS(parse_weight_format(""), input_error);
}
