// The executor for devices, on the emulator and under the ring: what it says is what the
// CPU says, and does not depend on how its work was cut, shared or interrupted.
#include "gpu/executor/device_executor.hpp"

#include "cpu/cpu_executor.hpp"
#include "cpu/test_model.hpp"
#include "gpu/simt/memory_map.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/small_engine.hpp"

using namespace octavo;
using namespace octavo::cpu;

namespace {

struct engine_options {
  std::int32_t blocks = 200;
  std::int32_t batched_tokens = 512;
  std::int32_t run_ahead = 0;
  int ranks = 1;
  std::vector<token_id> end_tokens = {};
  gpu::dtype kv_type = gpu::dtype::float16;
  bool sample_on_host = false;
  bool enforce_eager = false;
  double utilization = 0.92;
};

std::unique_ptr<executor> device_of(const tiny_model& model, const engine_options& options) {
  gpu::device_executor_options o;
  o.devices.assign(static_cast<std::size_t>(options.ranks), 0);
  o.kv_type = options.kv_type;
  o.num_blocks = options.blocks;
  o.max_num_batched_tokens = options.batched_tokens;
  o.max_num_seqs = std::min(16, options.batched_tokens);
  o.max_model_len = 300;
  o.batch_invariant = true;
  o.sample_on_host = options.sample_on_host;
  o.enforce_eager = options.enforce_eager;
  o.run_ahead = options.run_ahead > 0;
  o.gpu_memory_utilization = options.utilization;
  o.rehearsal_tokens_max = 20;
  o.generation.end_tokens = options.end_tokens;
  return std::make_unique<gpu::device_executor>(model::checkpoint::open(model.file()),
                                                model.words(), std::move(o));
}

/// An engine around a model on an emulated device, in batch-invariant mode.
class device_engine : public small_engine {
 public:
  device_engine(const tiny_model& model, const engine_options& options)
      : small_engine(device_of(model, options), {options.batched_tokens, options.run_ahead}) {}
};

answer alone(const tiny_model& model, const std::vector<token_id>& prompt, std::int32_t max_tokens,
             const sampling_parameters& how, int ranks = 1) {
  device_engine engine{model, {.ranks = ranks}};
  engine.submit(1, prompt, max_tokens, how);
  engine.run();
  return engine.of(1);
}

/// A model that two ranks can share.
tiny_shape shared_by_two(tiny_shape shape) {
  shape.heads = 8;
  shape.kv_heads = shape.gemma ? 1 : 4;
  return shape;
}

answer on_the_cpu(const tiny_model& model, const std::vector<token_id>& prompt,
                  std::int32_t max_tokens, const sampling_parameters& how) {
  cpu_executor_options options;
  options.num_blocks = 200;
  small_engine engine{std::make_unique<cpu_executor>(model.load(), model.words(), options), {}};
  engine.submit(1, prompt, max_tokens, how);
  engine.run();
  return engine.of(1);
}

/// Emulated devices of other sizes, while it lives.
struct small_devices {
  explicit small_devices(std::size_t bytes_each) : bytes(bytes_each) {
    gpu::simt::set_devices(2, bytes_each);
  }
  ~small_devices() { gpu::simt::set_devices(2, std::size_t{1} << 30); }
  std::size_t bytes;
};

}  // namespace

TEST_CASE("a device says greedily what the CPU says, beyond a window of 32") {
  const auto shape = GENERATE(llama_shape(false), sliding_shape(), gemma_shape());
  CAPTURE(shape.architecture);
  const tiny_model model{shape};
  const auto prompt = random_tokens(45, 3);
  device_engine engine{model, {.batched_tokens = 20}};
  engine.submit(1, prompt, 40, greedy());
  engine.run();
  REQUIRE(engine.of(1).tokens.size() == 40);
  CHECK(engine.of(1).text == model.words().decode(engine.of(1).tokens));
  CHECK(engine.of(1) == on_the_cpu(model, prompt, 40, greedy()));
}

TEST_CASE("on a device a request says the same alone, in company and in chunks") {
  const auto shape = GENERATE(llama_shape(false), gemma_shape());
  const int ranks = GENERATE(1, 2);
  const tiny_model model{shared_by_two(shape)};
  std::vector<answer> expected;
  for (unsigned i = 0; i < 4; ++i) {
    expected.push_back(
        alone(model, random_tokens(20 + 7 * i, i), 12, i % 2 == 0 ? greedy() : seeded(i), ranks));
  }
  for (const auto& [batched_tokens, run_ahead] : {std::pair{512, 1}, std::pair{7, 0}}) {
    CAPTURE(shape.architecture, ranks, batched_tokens, run_ahead);
    device_engine engine{
        model, {.batched_tokens = batched_tokens, .run_ahead = run_ahead, .ranks = ranks}};
    for (unsigned i = 0; i < 4; ++i) {
      engine.submit(i, random_tokens(20 + 7 * i, i), 12, i % 2 == 0 ? greedy() : seeded(i));
    }
    engine.run();
    for (unsigned i = 0; i < 4; ++i) CHECK(engine.of(i) == expected[i]);
  }
}

TEST_CASE("on a device a request says the same after a prefix hit") {
  const tiny_model model{llama_shape(true)};
  auto prompt = random_tokens(50, 4);
  const auto cold = alone(model, prompt, 12, seeded(7));
  auto other = prompt;
  other[40] = other[40] == 5 ? 6 : 5;
  device_engine engine{model, {}};
  engine.submit(1, other, 12, seeded(8));
  engine.run();
  engine.submit(2, prompt, 12, seeded(7));
  engine.run();
  CHECK(engine.of(2).end.cached_tokens == token_count{32});
  CHECK(engine.of(2) == cold);
}

TEST_CASE("on a device a request says the same after preemptions") {
  const auto shape = GENERATE(llama_shape(true), gemma_shape());
  const tiny_model model{shape};
  device_engine engine{model, {.blocks = shape.gemma ? 25 : 10, .run_ahead = 1}};
  for (unsigned i = 0; i < 4; ++i) engine.submit(i, random_tokens(30, i), 30, seeded(i));
  engine.run();
  std::int32_t preemptions = 0;
  for (unsigned i = 0; i < 4; ++i) {
    CAPTURE(shape.architecture, i);
    preemptions += engine.of(i).end.preemptions;
    CHECK(engine.of(i) == alone(model, random_tokens(30, i), 30, seeded(i)));
  }
  CHECK(preemptions > 0);
}

TEST_CASE("on a device samples of one request fork and diverge") {
  const tiny_model model{llama_shape(true)};
  device_engine engine{model, {.run_ahead = GENERATE(0, 1)}};
  engine.submit(1, random_tokens(33, 9), 12, seeded(3), 3);
  engine.run();
  for (std::uint16_t k = 0; k < 3; ++k) REQUIRE(engine.of(1, k).tokens.size() == 12);
  CHECK(engine.of(1, 0).tokens != engine.of(1, 1).tokens);
  CHECK(engine.of(1, 0) == alone(model, random_tokens(33, 9), 12, seeded(3)));
}

TEST_CASE("two ranks on devices say greedily what one says") {
  const auto shape = GENERATE(llama_shape(false), gemma_shape());
  const tiny_model model{shared_by_two(shape)};
  const auto prompt = random_tokens(45, 3);
  device_engine engine{model, {.run_ahead = GENERATE(0, 1), .ranks = 2}};
  engine.submit(1, prompt, 20, greedy());
  engine.run();
  CHECK(engine.of(1) == on_the_cpu(model, prompt, 20, greedy()));
}

TEST_CASE("keys and values in 8-bit floats change logits a little") {
  const tiny_model model{llama_shape(false)};
  device_engine engine{model, {.kv_type = gpu::dtype::float8_e4m3}};
  const auto prompt = random_tokens(45, 3);
  engine.submit(1, prompt, 20, greedy());
  engine.run();
  CHECK(engine.of(1).tokens.size() == 20);
}

TEST_CASE("a device that has no room for KV says so before it serves") {
  const tiny_model model{llama_shape(false)};
  gpu::device_executor_options o;
  o.gpu_memory_utilization = 1e-9;
  o.max_num_batched_tokens = 16;
  o.max_num_seqs = 4;
  o.max_model_len = 64;
  CHECK_THROWS_WITH(
      gpu::device_executor(model::checkpoint::open(model.file()), model.words(), std::move(o)),
      Catch::Matchers::ContainsSubstring("--gpu-memory-utilization: 1e-09 of the 1 GiB") &&
          Catch::Matchers::ContainsSubstring("no KV block of 0.00391 MiB is left") &&
          Catch::Matchers::ContainsSubstring("lower --max-num-batched-tokens"));
}

TEST_CASE("a device that is full of KV has room for all that requests make it take") {
  const small_devices devices{16 << 20};
  const tiny_model model{llama_shape(false)};
  const auto [ranks, enforce_eager] = GENERATE(std::pair{1, false}, std::pair{2, true});
  CAPTURE(ranks, enforce_eager);
  device_engine engine{
      model, {.blocks = 0, .ranks = ranks, .enforce_eager = enforce_eager, .utilization = 1}};
  // Two ranks on one device have blocks of half the size each.
  const std::size_t block_bytes = std::size_t{2} * 2 * 2 * 16 * 16 * 2;
  CHECK(devices.bytes - gpu::simt::allocated_bytes(0) < block_bytes);
  sampling_parameters how = seeded(5);
  how.repetition_penalty = 1.5F;
  how.logprobs = 20;
  engine.submit(1, random_tokens(280, 12), 8, how);
  // Samples of one prompt have copies of its logits.
  how.repetition_penalty = 1;
  engine.submit(2, random_tokens(30, 12), 3, how, 15);
  engine.run();
  CHECK(engine.of(1).tokens.size() == 8);
  CHECK(engine.of(2, 14).tokens.size() == 3);
  const auto prompt = random_tokens(45, 3);
  engine.submit(3, prompt, 8, greedy());
  engine.run();
  CHECK(engine.of(3) == on_the_cpu(model, prompt, 8, greedy()));
}

TEST_CASE("the share of a device's memory is of all that is used there, by whomever") {
  const small_devices devices{16 << 20};
  const tiny_model model{llama_shape(false)};
  const gpu::device_array<std::byte> of_others(GENERATE(0, 3 << 20));
  const auto executor = device_of(model, {.blocks = 0, .utilization = 0.75});
  const std::size_t share = devices.bytes / 4 * 3;
  const auto used = gpu::simt::allocated_bytes(0);
  CHECK(used <= share);
  CHECK(used > share - static_cast<std::size_t>(executor->capabilities().block_bytes));
}

TEST_CASE("on a device sampling is that of the host: penalties, cuts, biases, log-probabilities") {
  const tiny_model model{llama_shape(false)};
  const std::int32_t run_ahead = GENERATE(0, 1);
  const auto prompt = random_tokens(30, 12);
  sampling_parameters how = seeded(5);
  SECTION("penalties count prompt and output") {
    how.repetition_penalty = 1.5F;
    how.presence_penalty = 0.7F;
    how.frequency_penalty = 0.3F;
  }
  SECTION("top-k, top-p and min-p") {
    how.temperature = 2;
    how.top_k = 20;
    how.top_p = 0.9F;
    how.min_p = 0.02F;
  }
  SECTION("biases, and log-probabilities") {
    how.logit_bias = {{3, 4.0F}, {9, -100.0F}};
    how.logprobs = 3;
  }
  device_engine on_device{model, {.run_ahead = run_ahead}};
  device_engine on_host{model, {.sample_on_host = true}};
  for (device_engine* engine : {&on_device, &on_host}) {
    engine->submit(1, prompt, 25, how, 2);
    engine->submit(2, random_tokens(20, 13), 25, how);
    engine->run();
    REQUIRE(engine->of(2).tokens.size() == 25);
  }
  CHECK(on_device.of(1, 0) == on_host.of(1, 0));
  CHECK(on_device.of(1, 1) == on_host.of(1, 1));
  CHECK(on_device.of(2) == on_host.of(2));
  const auto& heard = on_device.logprobs_of(2);
  const auto& expected = on_host.logprobs_of(2);
  REQUIRE(heard.size() == expected.size());
  for (std::size_t i = 0; i < heard.size(); ++i) {
    CHECK(heard[i].logprob == Catch::Approx(expected[i].logprob).margin(1e-5));
    REQUIRE(heard[i].top.size() == expected[i].top.size());
    for (std::size_t k = 0; k < heard[i].top.size(); ++k) {
      CHECK(heard[i].top[k].first == expected[i].top[k].first);
    }
  }
}

TEST_CASE("a device that runs ahead stops where it stops without") {
  const tiny_model model{llama_shape(false)};
  const auto whole = alone(model, random_tokens(20, 2), 30, greedy());
  // The tenth token ends it; the company goes on, and then gets its seat.
  const token_id end = whole.tokens[9];
  REQUIRE(std::ranges::find(whole.tokens, end) == whole.tokens.begin() + 9);
  device_engine engine{model, {.run_ahead = 1, .end_tokens = {end}}};
  for (unsigned i = 1; i <= 3; ++i) engine.submit(i, random_tokens(20, i), 30, greedy());
  engine.run();
  device_engine calm{model, {.end_tokens = {end}}};
  for (unsigned i = 1; i <= 3; ++i) calm.submit(i, random_tokens(20, i), 30, greedy());
  calm.run();
  CHECK(engine.of(2).end.why == reason::finished_eos);
  CHECK(engine.of(2).tokens.size() == 10);
  for (unsigned i = 1; i <= 3; ++i) CHECK(engine.of(i) == calm.of(i));
}

TEST_CASE("on a device steps that run as graphs say what steps launched one by one say") {
  const auto shape = GENERATE(llama_shape(false), gemma_shape());
  const int ranks = GENERATE(1, 2);
  const tiny_model model{shared_by_two(shape)};
  device_engine as_graphs{model, {.ranks = ranks}};
  device_engine eager{model, {.ranks = ranks, .enforce_eager = true}};
  for (device_engine* engine : {&as_graphs, &eager}) {
    // Rows go from 5, which are padded to 8, down to 1.
    for (unsigned i = 0; i < 5; ++i) {
      const auto tokens = static_cast<std::int32_t>(5 + 4 * i);
      engine->submit(i, random_tokens(20 + 9 * i, i), tokens, i % 2 == 0 ? greedy() : seeded(i));
    }
    engine->run();
  }
  for (unsigned i = 0; i < 5; ++i) {
    CAPTURE(shape.architecture, ranks, i);
    REQUIRE(eager.of(i).tokens.size() == 5 + 4 * i);
    CHECK(as_graphs.of(i) == eager.of(i));
  }
}
