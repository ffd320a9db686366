// Whole requests through the ring: memory that runs out, policies against each
// other, and limits at the door. Blocks hold 4 tokens unless said otherwise.
#include "core/scheduler.hpp"

#include <algorithm>

#include "tests/support/catch.hpp"
#include "tests/support/fake_world.hpp"

using namespace octavo;
using namespace octavo::test;

namespace {

engine_config config_of(std::int32_t blocks) {
  engine_config config;
  config.block_size = token_count{4};
  config.num_blocks = block_count{blocks};
  config.max_model_len = token_count{4096};
  config.max_num_seqs = 16;
  config.max_num_batched_tokens = token_count{64};
  return config;
}

// Steps until sixteen requests, each with 1000 tokens of output, are done in
// memory for six of them.
struct crowd {
  std::int64_t steps = 0;
  std::int64_t preemptions = 0;
  std::int32_t preemptions_max = 0;
};
crowd crowd_under(policy_kind policy, std::int32_t output, std::int32_t max_tokens) {
  engine_config config;
  config.policy = policy;
  config.num_blocks = block_count{6 * 64};
  config.max_num_seqs = 16;
  fake_world world{config};
  for (std::uint64_t id = 1; id <= 16; ++id) {
    world.submit({.id = id, .prompt = 16, .output = output, .max_tokens = max_tokens});
  }
  world.run();
  world.check_end();
  crowd result{world.steps, world.statistics().preemptions, 0};
  for (std::uint64_t id = 1; id <= 16; ++id) {
    result.preemptions_max = std::max(result.preemptions_max, world.end_of(id).preemptions);
  }
  return result;
}

}  // namespace

TEST_CASE("one request runs to its limit, step by step") {
  fake_world world{config_of(10)};
  world.submit({.id = 1, .prompt = 6, .max_tokens = 3});
  world.run();
  world.check_end();
  const finish_event& end = world.end_of(1);
  CHECK(end.why == reason::finished_length);
  CHECK(end.request_done);
  CHECK(end.output_tokens == token_count{3});
  CHECK(end.cached_tokens == token_count{0});
  CHECK(world.text(1).size() == 3);
  CHECK(world.steps == 3);
  CHECK(world.statistics().generated_tokens == 3);
}

TEST_CASE("a text that ends is finished by its end, not by its limit") {
  fake_world world{config_of(10)};
  world.submit({.id = 1, .prompt = 6, .output = 2, .max_tokens = 8});
  world.submit({.id = 2, .prompt = 6, .max_tokens = 8});
  world.complete();
  world.complete(0b10);  // the second's first token is the step's second sample
  world.run();
  CHECK(world.end_of(1).why == reason::finished_eos);
  CHECK(world.end_of(2).why == reason::finished_stop);
  CHECK(world.end_of(2).output_tokens == token_count{1});
}

TEST_CASE("a prompt larger than the pool is refused at once, and those behind it run") {
  engine_config config = config_of(8);
  config.block_size = token_count{16};
  fake_world world{config};
  world.submit({.id = 1, .prompt = 200, .max_tokens = 10});
  REQUIRE(world.ends(1).size() == 1);
  CHECK(world.end_of(1).why == reason::rejected_never_fits);
  CHECK(world.end_of(1).a == 13);
  CHECK(world.end_of(1).b == 8);
  world.submit({.id = 2, .prompt = 10, .max_tokens = 4});
  world.run();
  world.check_end();
  CHECK(world.end_of(2).why == reason::finished_length);
}

TEST_CASE("the door and the pool agree: prompt and one token must fit") {
  engine_config config = config_of(8);
  fake_world world{config};
  world.submit({.id = 1, .prompt = 31, .max_tokens = 1});
  world.submit({.id = 2, .prompt = 32, .max_tokens = 1});
  world.run();
  CHECK(world.end_of(1).why == reason::finished_length);
  CHECK(world.end_of(2).why == reason::rejected_never_fits);
}

TEST_CASE("a request longer than the model is refused with both numbers") {
  engine_config config = config_of(100);
  config.max_model_len = token_count{32};
  fake_world world{config};
  world.submit({.id = 1, .prompt = 30, .max_tokens = 3});
  world.submit({.id = 2, .prompt = 30, .max_tokens = 2});
  world.run();
  CHECK(world.end_of(1).why == reason::rejected_too_long);
  CHECK(world.end_of(1).a == 33);
  CHECK(world.end_of(1).b == 32);
  CHECK(world.end_of(2).why == reason::finished_length);
}

TEST_CASE("fields out of range and a living id are refused as invalid") {
  fake_world world{config_of(100)};
  world.submit({.id = 1, .prompt = 0});
  world.submit({.id = 2, .prompt = 4, .max_tokens = 0});
  world.submit({.id = 3, .prompt = 4, .n = 0});
  world.submit({.id = 4, .prompt = 4, .n = 17});  // more than run at once
  for (std::uint64_t id = 1; id <= 4; ++id) {
    CHECK(world.end_of(id).why == reason::rejected_invalid);
  }
  world.submit({.id = 5, .prompt = 4, .max_tokens = 2});
  world.submit({.id = 5, .prompt = 4, .max_tokens = 2});
  world.run();
  REQUIRE(world.ends(5).size() == 2);
  CHECK(world.ends(5)[0].why == reason::rejected_invalid);
  CHECK(world.ends(5)[1].why == reason::finished_length);
  world.check_end();
}

TEST_CASE("alone in a pool that runs out, a request ends kv_exhausted and the engine lives") {
  for (const auto policy : {policy_kind::continuous, policy_kind::prefill_first,
                            policy_kind::reserve, policy_kind::static_batch}) {
    engine_config config = config_of(15);
    config.policy = policy;
    fake_world world{config};
    world.submit({.id = 1, .prompt = 10, .max_tokens = 1000});
    world.run();
    CHECK(world.end_of(1).why == reason::finished_kv_exhausted);
    CHECK(world.end_of(1).output_tokens == token_count{51});  // 60 places hold 10 + 50
    world.submit({.id = 2, .prompt = 10, .max_tokens = 5});
    world.run();
    CHECK(world.end_of(2).why == reason::finished_length);
    world.check_end();
  }
}

TEST_CASE("long outputs in memory for a few do not thrash") {
  const crowd optimistic = crowd_under(policy_kind::continuous, 1 << 20, 1000);
  const crowd safe = crowd_under(policy_kind::reserve, 1 << 20, 1000);
  CHECK(safe.preemptions == 0);
  CHECK(optimistic.preemptions > 0);
  CHECK(optimistic.preemptions_max <= 3);
  CAPTURE(optimistic.steps, safe.steps);
  CHECK(static_cast<double>(optimistic.steps) <= 1.3 * static_cast<double>(safe.steps));
}

TEST_CASE("where limits are far above what is generated, being optimistic pays") {
  const crowd optimistic = crowd_under(policy_kind::continuous, 100, 1000);
  const crowd safe = crowd_under(policy_kind::reserve, 100, 1000);
  CHECK(static_cast<double>(optimistic.steps) <= 0.5 * static_cast<double>(safe.steps));
}

TEST_CASE("whatever the policy and the memory, the texts are the same") {
  std::vector<std::vector<token_id>> expected;
  for (const auto policy : {policy_kind::continuous, policy_kind::prefill_first,
                            policy_kind::reserve, policy_kind::static_batch}) {
    for (const std::int32_t blocks : {200, 12}) {
      engine_config config = config_of(blocks);
      config.policy = policy;
      config.max_num_batched_tokens = token_count{16};
      fake_world world{config, {.token_ids = true}};
      for (std::uint64_t id = 1; id <= 6; ++id) {
        world.submit({.id = id, .prompt = 11, .output = 9, .max_tokens = 14});
      }
      world.run();
      world.check_end();
      std::vector<std::vector<token_id>> texts;
      for (std::uint64_t id = 1; id <= 6; ++id) texts.push_back(world.text(id));
      CHECK(texts[0].size() == 9);
      if (expected.empty()) expected = texts;
      CHECK(texts == expected);
    }
  }
}

TEST_CASE("a request preempted in mid-stream goes on where it stopped") {
  engine_config config = config_of(7);
  record_keeper keeper;
  fake_world world{config, {.token_ids = true}};
  world.engine.scheduler.observe(keeper);
  world.submit({.id = 1, .prompt = 7, .max_tokens = 12});
  world.submit({.id = 2, .prompt = 7, .max_tokens = 12});
  world.run();
  world.check_end();
  CHECK(world.end_of(2).preemptions > 0);
  CHECK(world.text(2).size() == 12);
  for (std::int32_t i = 0; i < 12; ++i) {
    CHECK(world.text(2)[static_cast<std::size_t>(i)] == token_at({.id = 2, .prompt = 7}, 0, 7 + i));
  }
  // It came back onto the blocks it had filled before, as far as they survived.
  const cache_statistics& cache = world.engine.blocks.statistics();
  CHECK(cache.resumed_query_tokens > 0);
  CHECK(cache.resumed_hit_tokens <= cache.resumed_query_tokens);
  CHECK(cache.query_tokens == 14);
}

TEST_CASE("a static batch's tail runs to its end and frees everything") {
  engine_config config = config_of(100);
  config.policy = policy_kind::static_batch;
  for (const std::int32_t run_ahead : {0, 1}) {
    config.run_ahead = run_ahead;
    fake_world world{config};
    for (std::uint64_t id = 1; id <= 3; ++id) {
      world.submit(
          {.id = id, .prompt = 5, .output = static_cast<std::int32_t>(id) * 4, .max_tokens = 20});
    }
    CHECK(world.in_flight() == nullptr);
    world.drain();
    CHECK(world.in_flight() != nullptr);
    world.run();
    world.check_end();
    for (std::uint64_t id = 1; id <= 3; ++id) {
      CHECK(world.end_of(id).why == reason::finished_eos);
      CHECK(world.end_of(id).output_tokens.raw() == static_cast<std::int32_t>(id) * 4);
    }
  }
}

TEST_CASE("a static batch that nobody joins starts when its wait is over") {
  engine_config config = config_of(100);
  config.policy = policy_kind::static_batch;
  fake_world world{config};
  world.submit({.id = 1, .prompt = 5, .max_tokens = 3});
  CHECK(world.engine.scheduler.wake() == micros{100'000});
  world.run();
  CHECK(world.end_of(1).admitted_at == micros{100'000});
}
