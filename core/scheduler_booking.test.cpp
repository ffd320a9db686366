// Inputs at every moment of a request's life: cancels, failures, drains, and
// the bounds of the queue. Blocks hold 4 tokens.
#include "tests/support/catch.hpp"
#include "tests/support/fake_world.hpp"

using namespace octavo;
using namespace octavo::test;

namespace {

engine_config config_of(std::int32_t blocks, std::int32_t run_ahead = 0) {
  engine_config config;
  config.block_size = token_count{4};
  config.num_blocks = block_count{blocks};
  config.max_num_seqs = 8;
  config.max_num_batched_tokens = token_count{8};
  config.run_ahead = run_ahead;
  return config;
}

// Ends everything and looks that request 1 ended once, cancelled.
void check_cancelled(fake_world& world, std::int32_t output_tokens) {
  world.run();
  world.check_end();
  CHECK(world.end_of(1).why == reason::finished_cancelled);
  CHECK(world.end_of(1).output_tokens == token_count{output_tokens});
  CHECK(std::ssize(world.text(1)) == output_tokens);
  CHECK(world.statistics().cancelled == 1);
}

}  // namespace

TEST_CASE("a waiting request is cancelled before it ever ran") {
  engine_config config = config_of(20);
  config.max_num_seqs = 1;
  fake_world world{config};
  world.submit({.id = 9, .prompt = 4, .max_tokens = 5});
  world.submit({.id = 1, .prompt = 4, .max_tokens = 5});
  world.complete();
  world.cancel(1);
  check_cancelled(world, 0);
  CHECK(world.end_of(9).why == reason::finished_length);
}

TEST_CASE("a request is cancelled in mid-prefill") {
  fake_world world{config_of(20)};
  world.submit({.id = 1, .prompt = 20, .max_tokens = 5});
  world.complete();
  world.cancel(1);
  check_cancelled(world, 0);
}

TEST_CASE("a decoding request is cancelled and frees its blocks with the next commit") {
  fake_world world{config_of(20)};
  world.submit({.id = 1, .prompt = 5, .max_tokens = 50});
  for (int i = 0; i < 4; ++i) world.complete();
  world.cancel(1);
  world.complete();  // the step in flight; its token arrived before the cancel was looked at
  CHECK(world.statistics().blocks_used == block_count{0});
  check_cancelled(world, 5);
}

TEST_CASE("a cancel with run-ahead wastes the token in flight") {
  fake_world world{config_of(20, 1)};
  world.submit({.id = 1, .prompt = 5, .max_tokens = 50});
  for (int i = 0; i < 4; ++i) world.complete();
  world.cancel(1);
  check_cancelled(world, 5);
  CHECK(world.statistics().wasted_tokens == 1);
}

TEST_CASE("what finished in the step is finished, whatever cancel arrived during it") {
  fake_world world{config_of(20)};
  world.submit({.id = 1, .prompt = 5, .max_tokens = 1});
  world.cancel(1);
  world.run();
  world.check_end();
  CHECK(world.end_of(1).why == reason::finished_length);
  CHECK(world.statistics().cancelled == 0);
}

TEST_CASE("cancels after the end, twice, or of nobody change nothing") {
  fake_world world{config_of(20)};
  world.submit({.id = 1, .prompt = 5, .max_tokens = 9});
  world.complete();
  world.cancel(1);
  world.cancel(1);
  world.cancel(77);
  world.complete();
  world.cancel(1);
  check_cancelled(world, 2);
}

TEST_CASE("submit and cancel in one boundary leave nothing behind") {
  fake_world world{config_of(20)};
  world.submit({.id = 9, .prompt = 5, .max_tokens = 2});
  world.submit({.id = 1, .prompt = 5, .max_tokens = 9});
  world.cancel(1);
  check_cancelled(world, 0);
}

TEST_CASE("cancelling one request never touches another that took over its records") {
  fake_world world{config_of(40)};
  // Sample 1 of request 1 ends early; its record goes to request 2.
  world.submit({.id = 1, .prompt = 4, .max_tokens = 30, .n = 2});
  world.complete();
  world.complete(0b10);
  world.submit({.id = 2, .prompt = 4, .max_tokens = 10});
  world.complete();
  world.complete();
  world.cancel(1);
  world.run();
  world.check_end();
  CHECK(world.end_of(2).why == reason::finished_length);
  CHECK(world.end_of(2).output_tokens == token_count{10});
}

TEST_CASE("when the executor fails a step, all in it end failed and nothing of it is known") {
  for (const std::int32_t run_ahead : {0, 1}) {
    fake_world world{config_of(20, run_ahead)};
    const fake_request first{.id = 1, .prompt = 20, .max_tokens = 5, .family = 1, .shared = 20};
    world.submit(first);
    world.complete();  // 8 tokens are fine
    world.fail();
    world.run();
    CHECK(world.end_of(1).why == reason::finished_executor_failed);
    CHECK(world.statistics().blocks_used == block_count{0});
    fake_request second = first;
    second.id = 2;
    world.submit(second);
    world.run();
    world.check_end();
    CHECK(world.end_of(2).why == reason::finished_length);
    CHECK(world.end_of(2).cached_tokens == token_count{8});
    CHECK(world.statistics().failed == 1);
  }
}

TEST_CASE("a failure ends the places of a static batch, ended ones without a second end") {
  engine_config config = config_of(40);
  config.policy = policy_kind::static_batch;
  fake_world world{config};
  world.submit({.id = 1, .prompt = 4, .output = 1, .max_tokens = 5});
  world.submit({.id = 2, .prompt = 4, .max_tokens = 5});
  world.drain();
  world.complete();
  world.fail();
  world.run();
  world.check_end();
  CHECK(world.end_of(1).why == reason::finished_eos);
  CHECK(world.end_of(2).why == reason::finished_executor_failed);
}

TEST_CASE("a draining engine refuses the new and finishes the old") {
  fake_world world{config_of(20)};
  world.submit({.id = 1, .prompt = 5, .max_tokens = 5});
  world.submit({.id = 2, .prompt = 5, .max_tokens = 5});
  world.drain();
  world.submit({.id = 3, .prompt = 5, .max_tokens = 5});
  world.run();
  world.check_end();
  CHECK(world.end_of(1).why == reason::finished_length);
  CHECK(world.end_of(2).why == reason::finished_length);
  CHECK(world.end_of(3).why == reason::rejected_draining);
}

TEST_CASE("the queue is bounded by requests and by tokens, and says which") {
  engine_config config = config_of(40);
  config.max_num_seqs = 1;
  config.max_num_queued_reqs = 2;
  config.max_num_queued_tokens = 20;
  fake_world world{config};
  world.submit({.id = 1, .prompt = 5, .max_tokens = 2});
  world.submit({.id = 2, .prompt = 12, .max_tokens = 2});
  world.submit({.id = 3, .prompt = 9, .max_tokens = 2});  // 12 + 9 tokens
  world.submit({.id = 4, .prompt = 8, .max_tokens = 2});
  world.submit({.id = 5, .prompt = 1, .max_tokens = 2});
  world.run();
  world.check_end();
  CHECK(world.end_of(3).why == reason::rejected_queue_full);
  CHECK(world.end_of(3).a == 21);
  CHECK(world.end_of(3).b == 20);
  CHECK(world.end_of(5).why == reason::rejected_queue_full);
  CHECK(world.end_of(5).a == 2);
  CHECK(world.end_of(5).b == 2);
  CHECK(world.statistics().rejected == 2);
  CHECK(world.end_of(4).why == reason::finished_length);
}

TEST_CASE("run-ahead gives the same texts, books what it wasted and passes no limit") {
  std::vector<std::vector<token_id>> texts[2];
  for (const std::int32_t run_ahead : {0, 1}) {
    fake_world world{config_of(14, run_ahead), {.token_ids = true}};
    for (std::uint64_t id = 1; id <= 5; ++id) {
      world.submit(
          {.id = id, .prompt = 6, .output = static_cast<std::int32_t>(id) * 3, .max_tokens = 10});
    }
    world.run();
    world.check_end();
    std::int64_t heard = 0;
    for (std::uint64_t id = 1; id <= 5; ++id) {
      texts[run_ahead].push_back(world.text(id));
      heard += std::ssize(world.text(id));
      CHECK(std::ssize(world.text(id)) == std::min(10, static_cast<std::int32_t>(id) * 3));
    }
    CHECK(world.statistics().generated_tokens == heard);
    // Three texts end by themselves while a step ahead of them runs; those that
    // end by their limit were seen to end.
    CHECK(world.statistics().wasted_tokens == (run_ahead == 0 ? 0 : 3));
  }
  CHECK(texts[0] == texts[1]);
}
