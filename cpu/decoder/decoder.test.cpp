// The forward pass of each family against float64, straight from the definition.
#include "cpu/decoder/decoder.hpp"

#include "cpu/decoder/test_batches.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::cpu;

// Where float32 and float64 differ, so may the rounding of a key or value. Rows that
// meet Q8_0 weights are rounded to 8 bits, four times in each layer.
TEST_CASE("logits equal those of float64 for each family") {
  SECTION("Llama, F32") {
    CHECK(largest_error(tiny_model{llama_shape(false)}) < 0.0005);
  }
  SECTION("Llama, Q8_0") {
    CHECK(largest_error(tiny_model{llama_shape(true)}) < 0.1);
  }
  SECTION("Qwen2: biases") {
    const tiny_shape shape{.architecture = "qwen2", .qkv_bias = true};
    CHECK(largest_error(tiny_model{shape}) < 0.0005);
  }
  SECTION("Qwen3: normed heads") {
    const tiny_shape shape{.architecture = "qwen3", .qk_norm = true};
    CHECK(largest_error(tiny_model{shape}) < 0.0005);
  }
  SECTION("Gemma 3: windows, two groups of layers") {
    CHECK(largest_error(tiny_model{gemma_shape()}) < 0.0005);
  }
}

TEST_CASE("a row's bits depend neither on company nor on chunks nor on threads") {
  const auto shape = GENERATE(llama_shape(false), llama_shape(true), gemma_shape());
  const tiny_model model{shape};
  const auto weights = model.load();
  texts inputs;
  for (unsigned i = 0; i < 8; ++i) inputs.push_back(random_tokens(60 + 3 * i, i));
  const auto together = compute(*weights, inputs, {.threads = 3, .chunk = 1000});
  for (const std::size_t chunk : {1U, 7U, 16U}) {
    CAPTURE(shape.architecture, shape.quantized, chunk);
    CHECK(compute(*weights, inputs, {.threads = 2, .chunk = chunk}) == together);
  }
  CHECK(compute(*weights, {inputs[5]}, {})[0] == together[5]);
}

// A key or value close to the middle of two codes may round otherwise in float64: a
// hundredth of its length, in one of many.
TEST_CASE("with 8-bit keys and values logits equal those of float64 with the same rounding") {
  const auto shape = GENERATE(llama_shape(false), gemma_shape());
  tiny_shape rounded = shape;
  rounded.kv_dtype = model::kv_dtype::int8;
  const tiny_model model{rounded};
  CHECK(largest_error(model) < 0.005);
  CHECK(largest_error(model, 2) < 0.005);
  // What the rounding itself makes of the logits.
  const texts inputs{random_tokens(75, 1)};
  const auto got = compute(*model.load(), inputs, {.kv_dtype = model::kv_dtype::int8})[0];
  CHECK(largest_difference(got, tiny_model{shape}.logits(inputs[0])) < 0.1);
}

TEST_CASE("with 8-bit keys and values bits depend neither on company nor chunks nor threads") {
  const auto shape = GENERATE(llama_shape(true), gemma_shape());
  const int ranks = GENERATE(1, 2);
  const auto weights = tiny_model{shape}.load(ranks);
  texts inputs;
  for (unsigned i = 0; i < 6; ++i) inputs.push_back(random_tokens(60 + 3 * i, i));
  constexpr auto int8 = model::kv_dtype::int8;
  const auto together = compute(*weights, inputs, {.threads = 3, .kv_dtype = int8});
  for (const std::size_t chunk : {1U, 7U, 16U}) {
    const way_to_compute how{.threads = 2, .chunk = chunk, .kv_dtype = int8};
    CHECK(compute(*weights, inputs, how) == together);
  }
  CHECK(compute(*weights, {inputs[5]}, {.kv_dtype = int8})[0] == together[5]);
}

TEST_CASE("weights that put their inputs into an order of their own get them in it") {
  const tiny_model model{llama_shape(false)};
  thread_pool pool{1};
  const auto source = model::checkpoint::open(model.file());
  auto with_floats = load_decoder(source, pool);
  auto with_codes = load_decoder(source, pool);
  const shuffled_weight q(64, 64, 1);
  const shuffled_weight k(32, 64, 2);
  const shuffled_weight down(64, 128, 3);
  const auto put = [](decoder_weights& into, auto member, const shuffled_weight& first,
                      const shuffled_weight& second, const shuffled_weight& third) {
    into.layers[0].ranks[0].q.weight = packed_weights(first.*member, "q");
    into.layers[0].ranks[0].k.weight = packed_weights(second.*member, "k");
    into.layers[1].ranks[0].down.weight = packed_weights(third.*member, "down");
  };
  put(with_floats, &shuffled_weight::plain, q, k, down);
  put(with_codes, &shuffled_weight::shuffled, q, k, down);
  REQUIRE_FALSE(with_codes.layers[0].ranks[0].q.weight.input_order().empty());
  const texts inputs{random_tokens(30, 1)};
  const auto expected = compute(with_floats, inputs, {})[0];
  const auto got = compute(with_codes, inputs, {.threads = 2})[0];
  CHECK(largest_difference(got, expected) < 0.05);
}
