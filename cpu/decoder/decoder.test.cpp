// The forward pass of each family against float64, straight from the definition.
#include "cpu/decoder/decoder.hpp"

#include <cmath>

#include "cpu/cpu_executor.hpp"
#include "cpu/test_model.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::cpu;

namespace {

/// Blocks in descending order, so that a table is not the identity.
slot whole_slot(const std::vector<kv_group>& groups, std::int32_t tokens, std::uint32_t& next) {
  slot state;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::int32_t blocks = (tokens + 15) / 16 * groups[g].pool_blocks;
    for (std::int32_t i = 0; i < blocks; ++i) state.tables[g].emplace_back(--next);
  }
  return state;
}

using texts = std::vector<std::vector<token_id>>;
/// The logits after each token, by text.
using all_logits = std::vector<std::vector<std::vector<float>>>;

struct way_to_compute {
  std::size_t threads = 1;
  /// Tokens of each text in one batch.
  std::size_t chunk = 1000;
};

/// All texts at once, chunk by chunk.
all_logits compute(const decoder_weights& weights, const texts& inputs, way_to_compute how) {
  thread_pool pool{how.threads};
  kv_cache cache{weights.config, 128};
  decoder computes{weights, pool, cache};
  const auto groups = kv_groups_of(weights.config);
  std::uint32_t next = 128;
  std::vector<slot> slots;
  std::size_t longest = 0;
  for (const auto& text : inputs) {
    slots.push_back(whole_slot(groups, static_cast<std::int32_t>(text.size()), next));
    longest = std::max(longest, text.size());
  }
  all_logits out(inputs.size());
  const std::size_t width = tiny_shape::vocabulary;
  for (std::size_t from = 0; from < longest; from += how.chunk) {
    decoder_batch batch;
    std::vector<std::size_t> owner;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::size_t end = std::min(from + how.chunk, inputs[i].size());
      if (from >= end) continue;
      batch.sequences.push_back({&slots[i], static_cast<std::int32_t>(from),
                                 static_cast<std::uint32_t>(batch.tokens.size()),
                                 static_cast<std::uint32_t>(end - from)});
      for (std::size_t at = from; at < end; ++at) {
        batch.logit_rows.push_back(static_cast<std::uint32_t>(batch.tokens.size()));
        batch.tokens.push_back(inputs[i][at]);
        owner.push_back(i);
      }
    }
    const auto logits = computes.forward(batch);
    REQUIRE(logits.size() == owner.size() * width);
    for (std::size_t row = 0; row < owner.size(); ++row) {
      const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(row * width);
      out[owner[row]].emplace_back(begin, begin + width);
    }
  }
  return out;
}

/// Of all tokens the largest length of a difference of logits, as a share of the
/// logits' own length.
double largest_error(const tiny_model& model) {
  const texts inputs{random_tokens(75, 1), random_tokens(40, 2)};
  const auto got = compute(*model.load(), inputs, {.threads = 2, .chunk = 21});
  double largest = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto expected = model.logits(inputs[i]);
    for (std::size_t at = 0; at < expected.size(); ++at) {
      double difference = 0;
      double length = 0;
      for (std::size_t t = 0; t < expected[at].size(); ++t) {
        difference += std::pow(static_cast<double>(got[i][at][t]) - expected[at][t], 2);
        length += std::pow(expected[at][t], 2);
      }
      largest = std::max(largest, std::sqrt(difference / length));
    }
  }
  return largest;
}

}  // namespace

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

namespace {

/// A GPTQ weight of 4 bits whose groups of 32 inputs lie anywhere, and the same as floats.
struct shuffled_weight {
  std::vector<std::uint32_t> codes, zeros;
  std::vector<std::uint16_t> scales;
  std::vector<std::int32_t> groups;
  std::vector<float> floats;
  model::weight_matrix shuffled, plain;

  shuffled_weight(std::size_t rows, std::size_t columns, unsigned seed)
      : codes(columns / 8 * rows),
        zeros(columns / 32 * rows / 8),
        scales(columns / 32 * rows),
        groups(columns),
        floats(rows * columns) {
    std::mt19937 random(seed);
    for (auto& word : codes) word = static_cast<std::uint32_t>(random());
    for (auto& word : zeros) word = 0x77777777;  // stored less one: 8
    for (auto& scale : scales) {
      scale = model::float_to_half(0.02F + 0.0001F * static_cast<float>(random() % 400));
    }
    for (std::size_t k = 0; k < columns; ++k) groups[k] = static_cast<std::int32_t>(k / 32);
    std::shuffle(groups.begin(), groups.end(), random);
    for (std::size_t n = 0; n < rows; ++n) {
      for (std::size_t k = 0; k < columns; ++k) {
        const auto code = static_cast<int>(codes[k / 8 * rows + n] >> (4 * (k % 8)) & 15U);
        const auto group = static_cast<std::size_t>(groups[k]);
        floats[n * columns + k] =
            static_cast<float>(code - 8) * model::half_to_float(scales[group * rows + n]);
      }
    }
    const auto bytes = [](const auto& values) { return std::as_bytes(std::span{values}); };
    const auto signed_rows = static_cast<std::int64_t>(rows);
    const auto signed_columns = static_cast<std::int64_t>(columns);
    shuffled = model::gptq_matrix{signed_rows,
                                  signed_columns,
                                  4,
                                  32,
                                  1,
                                  bytes(codes),
                                  bytes(zeros),
                                  {model::element_type::f16, bytes(scales)},
                                  bytes(groups)};
    plain =
        model::block_matrix{signed_rows, signed_columns, model::element_type::f32, bytes(floats)};
  }
};

}  // namespace

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
    into.layers[0].q.weight = packed_weights(first.*member, "q");
    into.layers[0].k.weight = packed_weights(second.*member, "k");
    into.layers[1].down.weight = packed_weights(third.*member, "down");
  };
  put(with_floats, &shuffled_weight::plain, q, k, down);
  put(with_codes, &shuffled_weight::shuffled, q, k, down);
  REQUIRE_FALSE(with_codes.layers[0].q.weight.input_order().empty());
  const texts inputs{random_tokens(30, 1)};
  const auto expected = compute(with_floats, inputs, {})[0];
  const auto got = compute(with_codes, inputs, {.threads = 2})[0];
  for (std::size_t at = 0; at < expected.size(); ++at) {
    double difference = 0;
    double length = 0;
    for (std::size_t t = 0; t < expected[at].size(); ++t) {
      difference += std::pow(static_cast<double>(got[at][t]) - expected[at][t], 2);
      length += std::pow(expected[at][t], 2);
    }
    CHECK(std::sqrt(difference / length) < 0.05);
  }
}
