// The golden property, and cases that the fuzzer once found.
#include "core/ring.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/engine_commands.hpp"

using namespace octavo;
using namespace octavo::test;

namespace {

engine_config config_of(policy_kind policy, std::int32_t blocks, std::int32_t run_ahead) {
  engine_config config;
  config.policy = policy;
  config.block_size = token_count{2};
  config.num_blocks = block_count{blocks};
  config.max_model_len = token_count{40};
  config.max_num_seqs = 6;
  config.max_num_batched_tokens = token_count{16};
  config.run_ahead = run_ahead;
  return config;
}

std::vector<command> lively() {
  return {submit{{.id = 1, .prompt = 9, .max_tokens = 12, .n = 3, .family = 1, .shared = 8}},
          complete_step{},
          submit{{.id = 2, .prompt = 11, .output = 5, .max_tokens = 9, .family = 1, .shared = 8}},
          submit{{.id = 3, .prompt = 3, .max_tokens = 20, .priority = 1}},
          complete_step{},
          complete_step{2},
          cancel{3},
          submit{{.id = 4, .prompt = 70}},
          complete_step{},
          fail_step{},
          submit{{.id = 5, .prompt = 12, .max_tokens = 8, .family = 1, .shared = 8}},
          complete_step{},
          drain{}};
}

}  // namespace

TEST_CASE("the same inputs give the same bytes, for every policy and run-ahead") {
  for (const auto policy : {policy_kind::continuous, policy_kind::prefill_first,
                            policy_kind::reserve, policy_kind::static_batch}) {
    for (const std::int32_t run_ahead : {0, 1}) {
      CAPTURE(to_string(policy), run_ahead);
      CHECK_NOTHROW(execute({config_of(policy, 24, run_ahead), {}, lively()}));
    }
  }
}

TEST_CASE("a replay of a log with one decision or one input altered does not pass") {
  const engine_config config = config_of(policy_kind::continuous, 24, 0);
  fake_world world{config};
  for (const command& what : lively()) apply(world, what);
  world.run();
  REQUIRE_NOTHROW(replay(config, world.sink.payloads));
  for (std::size_t i = 0; i < world.sink.payloads.size(); ++i) {
    auto altered = world.sink.payloads;
    altered[i].back() ^= std::byte{1};  // blocks used after the step
    CHECK_THROWS(replay(config, altered));
  }
  auto input_altered = world.sink.payloads;
  input_altered[0][3] ^= std::byte{2};  // tokens of the first prompt
  CHECK_THROWS(replay(config, input_altered));
  engine_config other = config;
  other.max_num_batched_tokens = token_count{15};
  CHECK_THROWS(replay(other, world.sink.payloads));
}

TEST_CASE("an exhausted request's slot can go to one admitted in the same step") {
  fuzz_case c;
  c.config = config_of(policy_kind::reserve, 14, 1);
  c.config.block_size = token_count{1};
  c.config.max_num_seqs = 1;
  c.config.enable_prefix_caching = false;
  c.config.kv_groups = {kv_group{}, kv_group{token_count{2}}};
  c.commands = {submit{{.id = 3, .prompt = 2, .max_tokens = 13}},
                submit{{.id = 4, .prompt = 5, .max_tokens = 20}}};
  CHECK_NOTHROW(execute(c));
}

TEST_CASE("a failed step under run-ahead gives a static batch's places back once") {
  fuzz_case c;
  c.config = config_of(policy_kind::static_batch, 20, 1);
  c.config.max_num_batched_tokens = token_count{40};
  c.commands = {submit{{.id = 49, .prompt = 27, .max_tokens = 2}},
                submit{{.id = 50, .prompt = 12, .max_tokens = 5}}, complete_step{1}, fail_step{}};
  CHECK_NOTHROW(execute(c));
}

TEST_CASE("a static batch under run-ahead comes to an end") {
  fuzz_case c;
  c.config = config_of(policy_kind::static_batch, 20, 1);
  c.commands = {submit{{.id = 1, .prompt = 2, .output = 2, .max_tokens = 9}},
                submit{{.id = 2, .prompt = 2, .output = 4, .max_tokens = 9}}, drain{}};
  CHECK_NOTHROW(execute(c));
}

TEST_CASE("samples of a static batch that start on cached blocks need no more than they hold") {
  fuzz_case c;
  c.config = config_of(policy_kind::static_batch, 7, 1);
  c.config.block_size = token_count{1};
  c.config.scheduler_reserve_full_isl = false;
  c.config.max_num_seqs = 5;
  c.options = {.prompt_keys = false, .output_keys = true};
  c.commands = {submit{{.id = 26, .prompt = 5, .max_tokens = 3, .n = 5}}};
  CHECK_NOTHROW(execute(c));
}
