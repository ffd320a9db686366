// Ranks of a tensor-parallel group against float64, against one rank, and against
// themselves computed otherwise.
#include "cpu/decoder/test_batches.hpp"
#include "model/quantized/weight_slice.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::cpu;

namespace {

/// 8 query heads that share 4 key-value heads.
tiny_shape wide(tiny_shape shape, std::size_t kv_heads = 4) {
  shape.heads = 8;
  shape.kv_heads = kv_heads;
  return shape;
}

}  // namespace

// Sums of float32 in another order: as far from float64 as one rank's. Rows that meet
// Q8_0 weights are rounded to 8 bits.
TEST_CASE("logits of 2, 4 and 8 ranks equal those of float64") {
  const int ranks = GENERATE(2, 4, 8);
  CAPTURE(ranks);
  SECTION("Llama") {
    CHECK(largest_error(tiny_model{wide(llama_shape(false))}, ranks) < 0.0005);
  }
  SECTION("Llama, Q8_0") {
    if (ranks == 8) return;  // halves of blocks
    CHECK(largest_error(tiny_model{wide(llama_shape(true))}, ranks) < 0.1);
  }
  SECTION("biases of sums, and a vocabulary that does not divide") {
    const tiny_shape shape{.qkv_bias = true, .output_bias = true, .tokens = 61};
    CHECK(largest_error(tiny_model{wide(shape)}, ranks) < 0.0005);
  }
  SECTION("Qwen2: biases") {
    const tiny_shape shape{.architecture = "qwen2", .qkv_bias = true};
    CHECK(largest_error(tiny_model{wide(shape)}, ranks) < 0.0005);
  }
  SECTION("Qwen3: normed heads") {
    const tiny_shape shape{.architecture = "qwen3", .qk_norm = true};
    CHECK(largest_error(tiny_model{wide(shape)}, ranks) < 0.0005);
  }
  SECTION("Gemma 3: windows, a single key-value head, tied tables") {
    CHECK(largest_error(tiny_model{wide(gemma_shape(), 1)}, ranks) < 0.0005);
  }
}

TEST_CASE("several ranks are as one, but for the last digits") {
  const auto shape = GENERATE(wide(llama_shape(false)), wide(gemma_shape(), 1));
  const tiny_model model{shape};
  const texts inputs{random_tokens(75, 1)};
  const auto one = compute(*model.load(), inputs, {})[0];
  for (const int ranks : {2, 4, 8}) {
    CHECK(largest_difference(compute(*model.load(ranks), inputs, {})[0], one) < 0.0005);
  }
}

TEST_CASE("with any number of ranks, bits depend neither on company nor chunks nor threads") {
  const auto shape =
      GENERATE(wide(llama_shape(false)), wide(llama_shape(true)), wide(gemma_shape(), 1));
  const int ranks = GENERATE(2, 4);
  const tiny_model model{shape};
  const auto weights = model.load(ranks);
  texts inputs;
  for (unsigned i = 0; i < 6; ++i) inputs.push_back(random_tokens(60 + 3 * i, i));
  const auto together = compute(*weights, inputs, {.threads = 3, .chunk = 1000});
  for (const std::size_t threads : {1U, 2U, 3U}) {
    CAPTURE(shape.architecture, shape.quantized, ranks, threads);
    CHECK(compute(*weights, inputs, {.threads = threads, .chunk = 9 * threads}) == together);
  }
  CHECK(compute(*weights, {inputs[5]}, {})[0] == together[5]);
}

TEST_CASE("ranks quantize their own part of the input in the order of their own weights") {
  const tiny_model model{wide(llama_shape(false))};
  thread_pool pool{1};
  const auto source = model::checkpoint::open(model.file());
  auto with_floats = load_decoder(source, pool, {}, 2);
  auto with_codes = load_decoder(source, pool, {}, 2);
  const shuffled_weight output(64, 128, 1);
  const shuffled_weight down(64, 128, 2);
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    const auto part = [&](const model::weight_matrix& of) {
      return packed_weights(model::slice_columns(of, {64 * rank, 64 * rank + 64}, "w").matrix, "w");
    };
    const auto at = static_cast<std::size_t>(rank);
    with_floats.layers[0].ranks[at].output.weight = part(output.plain);
    with_codes.layers[0].ranks[at].output.weight = part(output.shuffled);
    with_floats.layers[1].ranks[at].down.weight = part(down.plain);
    with_codes.layers[1].ranks[at].down.weight = part(down.shuffled);
    REQUIRE_FALSE(with_codes.layers[1].ranks[at].down.weight.input_order().empty());
  }
  const texts inputs{random_tokens(30, 1)};
  const auto expected = compute(with_floats, inputs, {})[0];
  CHECK(largest_difference(compute(with_codes, inputs, {.threads = 2})[0], expected) < 0.05);
  // What the whole weights give on one rank.
  auto whole = load_decoder(source, pool);
  whole.layers[0].ranks[0].output.weight = packed_weights(output.plain, "w");
  whole.layers[1].ranks[0].down.weight = packed_weights(down.plain, "w");
  CHECK(largest_difference(expected, compute(whole, inputs, {})[0]) < 0.0005);
}
