// The golden property on the executor that computes: mixed requests with cancels run
// on a model through actors and threads, and a replay without model, threads or
// clock gives the same bytes.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cpu/cpu_executor.hpp"
#include "cpu/test_model.hpp"
#include "model/generation/kv_groups.hpp"
#include "sim/replay/replay.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/real_engine.hpp"
#include "traces/random.hpp"
#include "traces/temp_file.hpp"

using namespace octavo;

namespace {

constexpr int requests = 50;

engine_config config_of(const std::vector<kv_group>& groups, policy_kind policy, int run_ahead) {
  engine_config c;
  c.policy = policy;
  c.run_ahead = run_ahead;
  c.kv_groups = groups;
  c.enable_prefix_caching = groups == std::vector{kv_group{}};
  c.num_blocks = block_count{40};
  c.max_model_len = token_count{160};
  c.max_num_seqs = 8;
  c.max_num_samples = 3;
  c.max_num_batched_tokens = token_count{48};
  c.static_max_wait = micros{2000};
  return c;
}

// Prompts of two families, so that some find a prefix; one, two or three samples.
request_spec request_of(std::uint64_t id) {
  const traces::random_stream draw{7, id};
  std::vector<token_id> prompt;
  const std::uint64_t length = 4 + draw.below(0, 90);
  for (std::uint64_t i = 0; i < length; ++i) {
    prompt.push_back(static_cast<token_id>(3 + (i * 7 + draw.below(1, 2)) % 60));
  }
  request_spec spec;
  spec.id = request_id{id};
  spec.prompt_tokens = token_count{static_cast<std::int32_t>(length)};
  spec.max_tokens = token_count{static_cast<std::int32_t>(1 + draw.below(2, 60))};
  spec.n = static_cast<std::int32_t>(1 + draw.below(3, 3));
  sampling_parameters how;
  how.temperature = draw.below(4, 2) == 0 ? 0.0F : 1.0F;
  how.seed = static_cast<std::int64_t>(id);
  spec.sampling = std::make_shared<const sampling_parameters>(how);
  const block_hasher hasher{{}};
  block_key key = hasher.root({});
  for (std::size_t at = 0; at + 16 <= prompt.size(); at += 16) {
    spec.keys.push_back(key = hasher.chain(key, std::span{prompt}.subspan(at, 16)));
  }
  spec.prompt = std::make_shared<const std::vector<token_id>>(std::move(prompt));
  return spec;
}

// Sends one request at a time, and cancels every seventh a moment later.
void run_client(const actors::engine_actor& engine, const actors::sink_actor& sink) {
  const traces::random_stream draw{9, 0};
  for (std::uint64_t id = 1; id <= requests; ++id) {
    auto batch = std::make_shared<std::vector<request_spec>>();
    batch->push_back(request_of(id));
    caf::anon_send(engine, actors::submit_atom::value, std::move(batch), sink);
    std::this_thread::sleep_for(std::chrono::microseconds{draw.below(id, 1500)});
    if (id % 7 == 0) caf::anon_send(engine, actors::cancel_atom::value, id);
  }
}

}  // namespace

TEST_CASE("golden: 50 mixed requests on the CPU executor are replayed byte for byte") {
  const bool slides = GENERATE(false, true);
  const auto policy = GENERATE(policy_kind::continuous, policy_kind::static_batch);
  const int run_ahead = GENERATE(0, 1);
  const cpu::tiny_model model{slides ? cpu::gemma_shape() : cpu::llama_shape(true)};
  const auto weights = model.load();
  const engine_config config = config_of(
      model::engine_kv_groups(weights->config, cpu::kv_cache::block_size), policy, run_ahead);
  test::real_run_setup setup;
  setup.config = config;
  setup.device = [&] {
    cpu::cpu_executor_options options;
    options.threads = 2;
    options.num_blocks = config.num_blocks.raw();
    options.end_tokens = {2, 31};
    return std::make_unique<cpu::cpu_executor>(weights, model.words(), options);
  };
  setup.requests = requests;
  setup.client = [](int, const auto& engine, const auto& sink) { run_client(engine, sink); };
  const traces::temp_file file{"", ".log"};
  const scheduler_statistics sums = test::real_run{setup, file.path()}.run();
  INFO(test::text_of(sums));
  CHECK(sums.submitted == requests);
  CHECK(sums.completed > 0);
  CHECK(sums.cancelled > 0);
  CHECK(sums.completed + sums.cancelled == sums.submitted);
  const sim::replay_report report = sim::verify_log(file.path());
  if (report.difference) FAIL(sim::describe(*report.difference));
  CHECK(report.records > requests);
}
