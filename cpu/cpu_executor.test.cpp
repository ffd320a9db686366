// The executor under the ring, on tiny random models: what it says equals float64,
// and does not depend on how its work was cut, shared or interrupted.
#include "cpu/cpu_executor.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "cpu/test_model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/small_engine.hpp"

using namespace octavo;
using namespace octavo::cpu;

namespace {

struct engine_options {
  std::int32_t blocks = 200;
  std::int32_t batched_tokens = 512;
  std::int32_t run_ahead = 0;
  std::size_t threads = 2;
  std::vector<token_id> end_tokens = {};
  int ranks = 1;
  model::kv_dtype kv_dtype = model::kv_dtype::fp16;
};

/// An engine around a model on the CPU.
class cpu_engine : public small_engine {
 public:
  cpu_engine(const tiny_model& model, const engine_options& options)
      : small_engine(std::make_unique<cpu_executor>(
                         model.load(options.ranks), model.words(),
                         cpu_executor_options{.threads = options.threads,
                                              .num_blocks = options.blocks,
                                              .tensor_parallel_size = options.ranks,
                                              .kv_dtype = options.kv_dtype,
                                              .end_tokens = options.end_tokens}),
                     {options.batched_tokens, options.run_ahead}) {}
};

answer alone(const tiny_model& model, const std::vector<token_id>& prompt, std::int32_t max_tokens,
             const sampling_parameters& how, int ranks = 1) {
  cpu_engine engine{model, {.ranks = ranks}};
  engine.submit(1, prompt, max_tokens, how);
  engine.run();
  return engine.of(1);
}

/// How far below the largest logit each chosen token's is, at most, in float64.
double largest_regret(const tiny_model& model, std::vector<token_id> text,
                      const std::vector<token_id>& output) {
  const std::size_t prompt = text.size();
  text.insert(text.end(), output.begin(), output.end());
  const auto logits = model.logits(text);
  double regret = 0;
  for (std::size_t i = 0; i < output.size(); ++i) {
    const auto& row = logits[prompt + i - 1];
    regret =
        std::max(regret, *std::ranges::max_element(row) - row[static_cast<std::size_t>(output[i])]);
  }
  return regret;
}

}  // namespace

TEST_CASE("greedy tokens are the likeliest by float64, also beyond a window of 32") {
  const auto [shape, tolerance] =
      GENERATE(std::pair{llama_shape(false), 0.02}, std::pair{llama_shape(true), 0.5},
               std::pair{sliding_shape(), 0.02}, std::pair{gemma_shape(), 0.02});
  CAPTURE(shape.architecture, shape.quantized);
  const tiny_model model{shape};
  const auto prompt = random_tokens(45, 3);
  cpu_engine engine{model, {.batched_tokens = 20}};
  engine.submit(1, prompt, 60, greedy());
  engine.run();
  REQUIRE(engine.of(1).tokens.size() == 60);
  CHECK(engine.of(1).end.why == reason::finished_length);
  CHECK(engine.of(1).text == model.words().decode(engine.of(1).tokens));
  CHECK(largest_regret(model, prompt, engine.of(1).tokens) <= tolerance);
}

TEST_CASE("a request says the same alone, in company and in chunks") {
  const auto shape = GENERATE(llama_shape(false), llama_shape(true), gemma_shape());
  CAPTURE(shape.architecture, shape.quantized);
  const tiny_model model{shape};
  std::vector<answer> expected;
  for (unsigned i = 0; i < 8; ++i) {
    const auto how = i % 2 == 0 ? greedy() : seeded(i);
    expected.push_back(alone(model, random_tokens(20 + 7 * i, i), 30, how));
    REQUIRE(expected.back().tokens.size() == 30);
  }
  for (const std::int32_t batched_tokens : {512, 16, 7}) {
    for (const std::int32_t run_ahead : {0, 1}) {
      CAPTURE(batched_tokens, run_ahead);
      cpu_engine engine{model, {.batched_tokens = batched_tokens, .run_ahead = run_ahead}};
      for (unsigned i = 0; i < 8; ++i) {
        engine.submit(i, random_tokens(20 + 7 * i, i), 30, i % 2 == 0 ? greedy() : seeded(i));
      }
      engine.run();
      for (unsigned i = 0; i < 8; ++i) CHECK(engine.of(i) == expected[i]);
    }
  }
}

TEST_CASE("a request says the same after a prefix hit") {
  const tiny_model model{llama_shape(true)};
  auto prompt = random_tokens(50, 4);
  const auto cold = alone(model, prompt, 20, seeded(7));
  CHECK(cold.end.cached_tokens == token_count{0});
  auto other = prompt;
  other[40] = other[40] == 5 ? 6 : 5;
  cpu_engine engine{model, {}};
  engine.submit(1, other, 20, seeded(8));
  engine.run();
  engine.submit(2, prompt, 20, seeded(7));
  engine.run();
  CHECK(engine.of(2).end.cached_tokens == token_count{32});
  CHECK(engine.of(2) == cold);
}

TEST_CASE("a request says the same after preemptions") {
  const auto shape = GENERATE(llama_shape(true), gemma_shape());
  const auto run_ahead = GENERATE(0, 1);
  const tiny_model model{shape};
  // Six texts of 90 tokens need 36 blocks, or 3 times 36 where groups are two.
  cpu_engine engine{model, {.blocks = shape.gemma ? 50 : 20, .run_ahead = run_ahead}};
  for (unsigned i = 0; i < 6; ++i) engine.submit(i, random_tokens(30, i), 60, seeded(i));
  engine.run();
  std::int32_t preemptions = 0;
  for (unsigned i = 0; i < 6; ++i) {
    CAPTURE(shape.architecture, run_ahead, i);
    preemptions += engine.of(i).end.preemptions;
    CHECK(engine.of(i) == alone(model, random_tokens(30, i), 60, seeded(i)));
  }
  CHECK(preemptions > 0);
}

TEST_CASE("samples of one request start alike, diverge, and do not depend on company") {
  const tiny_model model{llama_shape(true)};
  // With 33 tokens a block is shared in part and copied; with 32 none is.
  const auto length = GENERATE(std::size_t{33}, std::size_t{32});
  cpu_engine single{model, {}};
  single.submit(1, random_tokens(length, 9), 25, seeded(3), 3);
  single.run();
  for (std::uint16_t k = 0; k < 3; ++k) REQUIRE(single.of(1, k).tokens.size() == 25);
  CHECK(single.of(1, 0).tokens != single.of(1, 1).tokens);
  CHECK(single.of(1, 1).tokens != single.of(1, 2).tokens);
  CHECK(single.of(1, 0) == alone(model, random_tokens(length, 9), 25, seeded(3)));
  cpu_engine crowded{model, {.batched_tokens = 17, .run_ahead = 1}};
  crowded.submit(1, random_tokens(length, 9), 25, seeded(3), 3);
  crowded.submit(2, random_tokens(40, 10), 25, greedy(), 2);
  crowded.run();
  for (std::uint16_t k = 0; k < 3; ++k) CHECK(crowded.of(1, k) == single.of(1, k));
  CHECK(crowded.of(2, 0) == crowded.of(2, 1));
  CHECK(crowded.of(2, 0) == alone(model, random_tokens(40, 10), 25, greedy()));
}

TEST_CASE("a stop string may begin with the token that a forked sample begins with") {
  const tiny_model model{llama_shape(true)};
  const auto prompt = random_tokens(33, 9);
  cpu_engine plain{model, {}};
  plain.submit(1, prompt, 10, seeded(3), 3);
  plain.run();
  for (std::uint16_t k = 0; k < 3; ++k) {
    CAPTURE(k);
    auto how = seeded(3);
    how.stop = {plain.of(1, k).text.substr(0, 2)};
    cpu_engine stopping{model, {}};
    stopping.submit(1, prompt, 10, how, 3);
    stopping.run();
    CHECK(stopping.of(1, k).end.why == reason::finished_stop);
    CHECK(stopping.of(1, k).tokens.size() == 2);
    CHECK(stopping.of(1, k).text.empty());
  }
}

TEST_CASE("samples of a model with windows, which cannot fork, are those of its own seeds") {
  const tiny_model model{gemma_shape()};
  auto how = seeded(3);
  how.temperature = 5;  // the tied head makes the last token again the likeliest by far
  cpu_engine engine{model, {}};
  engine.submit(1, random_tokens(33, 9), 25, how, 2);
  engine.run();
  CHECK(engine.of(1, 0) == alone(model, random_tokens(33, 9), 25, how));
  CHECK(engine.of(1, 1).tokens.size() == 25);
  CHECK(engine.of(1, 1).tokens != engine.of(1, 0).tokens);
}

TEST_CASE("log-probabilities go to those who ask, and are those of float64") {
  const tiny_model model{llama_shape(false)};
  auto how = seeded(5);
  how.logprobs = 2;
  cpu_engine engine{model, {}};
  auto prompt = random_tokens(20, 3);
  engine.submit(1, prompt, 6, how);
  engine.submit(2, prompt, 6, seeded(6));
  engine.run();
  CHECK(engine.logprobs_of(2).empty());
  REQUIRE(engine.logprobs_of(1).size() == 6);
  const auto& output = engine.of(1).tokens;
  std::vector<token_id> text = prompt;
  text.insert(text.end(), output.begin(), output.end());
  const auto logits = model.logits(text);
  for (std::size_t i = 0; i < output.size(); ++i) {
    const auto& row = logits[prompt.size() + i - 1];
    double sum = 0;
    for (const double logit : row) sum += std::exp(logit);
    const token_logprobs& heard = engine.logprobs_of(1)[i];
    CHECK(heard.logprob ==
          Catch::Approx(row[static_cast<std::size_t>(output[i])] - std::log(sum)).margin(0.02));
    REQUIRE(heard.top.size() == 2);
    CHECK(heard.top[0].second ==
          Catch::Approx(*std::ranges::max_element(row) - std::log(sum)).margin(0.02));
    CHECK(heard.top[0].second >= heard.top[1].second);
  }
}

TEST_CASE("each forked sample is continued by the likeliest tokens of its own text") {
  const tiny_model model{llama_shape(false)};
  auto how = seeded(5);
  how.temperature = 0.05F;
  cpu_engine engine{model, {}};
  const auto prompt = random_tokens(37, 11);
  engine.submit(1, prompt, 30, how, 3);
  engine.run();
  // At temperature 0.05 a logit 1 below the largest has a chance of e^-20.
  for (std::uint16_t k = 0; k < 3; ++k) {
    CHECK(largest_regret(model, prompt, engine.of(1, k).tokens) < 1);
  }
}

TEST_CASE("an end token, a stop token and a stop string end the text, each by its reason") {
  const tiny_model model{llama_shape(true)};
  const auto prompt = random_tokens(30, 12);
  const answer plain = alone(model, prompt, 40, seeded(1));
  const token_id sixth = plain.tokens[5];
  const auto first =
      static_cast<std::size_t>(std::ranges::find(plain.tokens, sixth) - plain.tokens.begin());
  SECTION("an end token") {
    cpu_engine engine{model, {.end_tokens = {sixth}}};
    engine.submit(1, prompt, 40, seeded(1));
    engine.run();
    CHECK(engine.of(1).end.why == reason::finished_eos);
    CHECK(engine.of(1).tokens.size() == first + 1);
    CHECK(engine.of(1).text == plain.text.substr(0, first));
    auto how = seeded(1);
    how.ignore_eos = true;
    engine.submit(2, prompt, 40, how);
    engine.run();
    CHECK(engine.of(2).tokens == plain.tokens);
  }
  SECTION("a stop token") {
    auto how = seeded(1);
    how.stop_token_ids = {sixth};
    CHECK(alone(model, prompt, 40, how).end.why == reason::finished_stop);
  }
  SECTION("a stop string") {
    auto how = seeded(1);
    how.stop = {plain.text.substr(4, 3)};
    const answer stopped = alone(model, prompt, 40, how);
    CHECK(stopped.end.why == reason::finished_stop);
    CHECK(stopped.text == plain.text.substr(0, plain.text.find(how.stop[0])));
  }
}

namespace {

/// 8 query heads that share `kv_heads` key-value heads.
tiny_model wide_model(tiny_shape shape, std::size_t kv_heads) {
  shape.heads = 8;
  shape.kv_heads = kv_heads;
  return tiny_model{shape};
}

}  // namespace

TEST_CASE("several ranks say greedily what one says") {
  const bool gemma = GENERATE(false, true);
  const tiny_model model = gemma ? wide_model(gemma_shape(), 1) : wide_model(llama_shape(false), 4);
  const auto prompt = random_tokens(45, 3);
  const answer one = alone(model, prompt, 60, greedy());
  for (const int ranks : {2, 4}) {
    CAPTURE(gemma, ranks);
    const answer several = alone(model, prompt, 60, greedy(), ranks);
    CHECK(several == one);
    CHECK(largest_regret(model, prompt, several.tokens) <= 0.02);
  }
}

TEST_CASE("with several ranks a request says the same in company, chunks and after preemptions") {
  const bool gemma = GENERATE(false, true);
  const int ranks = GENERATE(2, 4);
  const tiny_model model = gemma ? wide_model(gemma_shape(), 1) : wide_model(llama_shape(true), 4);
  cpu_engine engine{
      model, {.blocks = gemma ? 50 : 20, .batched_tokens = 17, .threads = 3, .ranks = ranks}};
  for (unsigned i = 0; i < 6; ++i) engine.submit(i, random_tokens(30, i), 60, seeded(i));
  engine.run();
  std::int32_t preemptions = 0;
  for (unsigned i = 0; i < 6; ++i) {
    CAPTURE(gemma, ranks, i);
    preemptions += engine.of(i).end.preemptions;
    CHECK(engine.of(i) == alone(model, random_tokens(30, i), 60, seeded(i), ranks));
  }
  CHECK(preemptions > 0);
}

TEST_CASE("with several ranks a request says the same after a prefix hit, and samples fork") {
  const tiny_model model = wide_model(llama_shape(true), 4);
  const auto prompt = random_tokens(50, 4);
  cpu_engine engine{model, {.ranks = 2}};
  engine.submit(1, prompt, 20, seeded(7), 2);
  engine.run();
  engine.submit(2, prompt, 20, seeded(7), 2);
  engine.run();
  CHECK(engine.of(2).end.cached_tokens == token_count{48});
  CHECK(engine.of(1) == alone(model, prompt, 20, seeded(7), 2));
  for (std::uint16_t k = 0; k < 2; ++k) CHECK(engine.of(2, k) == engine.of(1, k));
  CHECK(engine.of(1, 0).tokens != engine.of(1, 1).tokens);
}

TEST_CASE("an executor for another number of ranks than its weights is refused") {
  const tiny_model model{llama_shape(false)};
  const auto make = [&] {
    cpu_executor_options options;
    options.num_blocks = 4;
    cpu_executor(model.load(2), model.words(), options);
  };
  CHECK_THROWS_AS(make(), input_error);
  CHECK_THROWS_WITH(make(), Catch::Matchers::ContainsSubstring(
                                "tensor_parallel_size is 1; the weights are cut for 2"));
}

TEST_CASE("with 8-bit keys and values greedy tokens are the likeliest by float64 so rounded") {
  const bool gemma = GENERATE(false, true);
  tiny_shape shape = gemma ? gemma_shape() : llama_shape(false);
  shape.kv_dtype = model::kv_dtype::int8;
  const tiny_model model{shape};
  const auto prompt = random_tokens(45, 3);
  cpu_engine engine{model, {.batched_tokens = 20, .kv_dtype = model::kv_dtype::int8}};
  engine.submit(1, prompt, 60, greedy());
  engine.run();
  CHECK(engine.of(1).tokens.size() == 60);
  CHECK(largest_regret(model, prompt, engine.of(1).tokens) <= 0.1);
}

TEST_CASE("with 8-bit keys and values a request says the same after hits, forks, preemptions") {
  const tiny_model model{llama_shape(true)};
  constexpr auto int8 = model::kv_dtype::int8;
  const auto cold = [&](unsigned i) {
    cpu_engine engine{model, {.kv_dtype = int8}};
    engine.submit(1, random_tokens(33, i), 60, seeded(i));
    engine.run();
    return engine.of(1);
  };
  cpu_engine engine{model, {.blocks = 20, .batched_tokens = 17, .kv_dtype = int8}};
  // The first forks in the middle of a block; the last hits two blocks of the first.
  engine.submit(0, random_tokens(33, 0), 60, seeded(0), 2);
  for (unsigned i = 1; i < 6; ++i) engine.submit(i, random_tokens(33, i), 60, seeded(i));
  engine.run();
  engine.submit(6, random_tokens(33, 0), 60, seeded(0), 2);
  engine.run();
  std::int32_t preemptions = 0;
  for (unsigned i = 0; i < 6; ++i) {
    CAPTURE(i);
    preemptions += engine.of(i).end.preemptions;
    CHECK(engine.of(i) == cold(i));
  }
  CHECK(preemptions > 0);
  cpu_engine calm{model, {.kv_dtype = int8}};
  for (const unsigned id : {1U, 2U}) {
    calm.submit(id, random_tokens(33, 0), 60, seeded(0), 2);
    calm.run();
  }
  CHECK(calm.of(2).end.cached_tokens == token_count{32});
  for (std::uint16_t k = 0; k < 2; ++k) {
    CHECK(calm.of(1, k) == engine.of(0, k));
    CHECK(calm.of(2, k) == engine.of(0, k));
    CHECK(engine.of(6, k) == engine.of(0, k));
  }
}
