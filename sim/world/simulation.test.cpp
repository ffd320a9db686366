// End-to-end runs on the virtual clock whose every time can be computed by
// hand: each step takes 100 ms, whatever it computes.
#include "sim/world/simulation.hpp"

#include "core/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sim_world.hpp"

using namespace octavo;
using sim::request_outcome;
using test::request_at;
using test::seconds_us;
using test::world_of;

TEST_CASE("one request: the first token after one step, then one each step") {
  const auto o = simulate(world_of({request_at(1, 10, 3)}));
  const request_outcome& r = o.requests[0];
  CHECK(r.arrival == seconds_us(1));
  CHECK(r.admitted == seconds_us(1));
  CHECK(r.first_token == seconds_us(1.1));
  CHECK(r.last_token == seconds_us(1.3));
  CHECK(r.output_tokens == token_count{3});
  CHECK(r.finish == reason::finished_eos);
  CHECK(o.itl_us.count() == 2);
  CHECK(o.itl_us.mean() == 100'000);
  CHECK(o.steps == 3);
  CHECK(o.generated_tokens == 3);
  CHECK(o.end == seconds_us(1.3));
  CHECK(o.blocks_total == block_count{1000});
}

TEST_CASE("what arrives while a step runs joins the next") {
  const auto o = simulate(world_of({request_at(0, 10, 4), request_at(0.05, 10, 2)}));
  CHECK(o.requests[0].first_token == seconds_us(0.1));
  CHECK(o.requests[1].admitted == seconds_us(0.1));
  CHECK(o.requests[1].first_token == seconds_us(0.2));
  CHECK(o.requests[1].last_token == seconds_us(0.3));
  CHECK(o.requests[0].last_token == seconds_us(0.4));
  CHECK(o.steps == 4);
}

TEST_CASE("a long prompt is computed in chunks beside a running sequence, which loses no step") {
  auto world = world_of({request_at(0, 10, 6), request_at(0.05, 250, 1)});
  world.engine.max_num_seqs = 4;
  world.engine.max_num_batched_tokens = token_count{100};
  const auto o = simulate(world);
  // Beside one decode, 99 + 99 + 52 tokens: three steps from 0.1 on.
  CHECK(o.requests[1].first_token == seconds_us(0.4));
  CHECK(o.itl_us.max() == 100'000);
  CHECK(o.requests[0].last_token == seconds_us(0.6));
}

TEST_CASE("a seat that is taken makes the next one queue") {
  auto world = world_of({request_at(0, 10, 2), request_at(0, 10, 2), request_at(0, 10, 2)});
  world.engine.max_num_seqs = 1;
  const auto o = simulate(world);
  for (int i = 0; i < 3; ++i) {
    CHECK(o.requests[i].admitted == seconds_us(0.2 * i));
    CHECK(o.requests[i].first_token == seconds_us(0.2 * i + 0.1));
  }
  CHECK(o.end == seconds_us(0.6));
}

TEST_CASE("the host's time adds to the device's, unless it runs ahead") {
  auto world = world_of({request_at(0, 10, 3)});
  world.cost = std::make_shared<test::flat_cost>(100'000, 20'000);
  SECTION("in turn: 120 ms a step") {
    const auto o = simulate(world);
    CHECK(o.requests[0].first_token == seconds_us(0.12));
    CHECK(o.requests[0].last_token == seconds_us(0.36));
    CHECK(o.wasted_tokens == 0);
  }
  SECTION("ahead: the longer of the two, and one token computed for nobody") {
    world.engine.run_ahead = 1;
    const auto o = simulate(world);
    CHECK(o.requests[0].first_token == seconds_us(0.1));
    CHECK(o.requests[0].last_token == seconds_us(0.3));
    CHECK(o.wasted_tokens == 1);
    CHECK(o.end == seconds_us(0.4));
  }
  SECTION("ahead with a slow host: its time is the step's") {
    world.engine.run_ahead = 1;
    world.cost = std::make_shared<test::flat_cost>(100'000, 150'000);
    CHECK(simulate(world).requests[0].last_token == seconds_us(0.45));
  }
  SECTION("ahead, with a limit that says when it ends: nothing is wasted") {
    world.engine.run_ahead = 1;
    world.work.limit = sim::assumed_limit::exact;
    const auto o = simulate(world);
    CHECK(o.requests[0].last_token == seconds_us(0.3));
    CHECK(o.wasted_tokens == 0);
    CHECK(o.requests[0].finish == reason::finished_eos);
  }
}

TEST_CASE("running ahead, what arrives during a step waits for one that is planned already") {
  auto world = world_of({request_at(0, 10, 5), request_at(0.05, 10, 1)});
  world.engine.run_ahead = 1;
  const auto o = simulate(world);
  // At 0.05 the step of 0.1 to 0.2 is planned; at 0.1 that of 0.2 to 0.3 is, with the newcomer.
  CHECK(o.requests[1].admitted == seconds_us(0.1));
  CHECK(o.requests[1].first_token == seconds_us(0.3));
}

TEST_CASE("limits: exact and context let the text end, a number cuts it") {
  auto world = world_of({request_at(0, 10, 8)});
  SECTION("context") {
    CHECK(simulate(world).requests[0].finish == reason::finished_eos);
  }
  SECTION("exact") {
    world.work.limit = sim::assumed_limit::exact;
    CHECK(simulate(world).requests[0].output_tokens == token_count{8});
  }
  SECTION("a number") {
    world.work.limit = sim::assumed_limit::fixed;
    world.work.fixed_tokens = token_count{5};
    const auto o = simulate(world);
    CHECK(o.requests[0].finish == reason::finished_length);
    CHECK(o.requests[0].output_tokens == token_count{5});
    CHECK(o.end == seconds_us(0.5));
  }
}

TEST_CASE("a request longer than the model is refused whole, and the rest goes on") {
  auto world = world_of({request_at(0, 5000, 10), request_at(0, 10, 2)});
  const auto o = simulate(world);
  CHECK(o.requests[0].finish == reason::rejected_too_long);
  CHECK(o.requests[0].prompt_tokens == token_count{5000});
  CHECK(o.requests[0].output_tokens == token_count{0});
  CHECK(o.requests[0].first_token < micros{0});
  CHECK(o.requests[1].completed());
}

TEST_CASE("usage is integrated from result to result") {
  const auto o = simulate(world_of({request_at(2, 10, 3), request_at(5, 10, 3)}));
  // From 2 s to 5.3 s. After its first result a request holds one block with 10 tokens, after the
  // second one with 11, then none; nothing is held between the two requests.
  CHECK(o.usage.seconds == Catch::Approx(3.3));
  CHECK(o.usage.block_seconds == Catch::Approx(2 * 0.2));
  CHECK(o.usage.token_seconds == Catch::Approx(2 * (0.1 * 10 + 0.1 * 11)));
  CHECK(o.usage.blocks_used_max == block_count{1});
}

TEST_CASE("a contiguous layout holds the model's length for each sequence") {
  auto world = world_of({request_at(0, 10, 3)});
  world.engine.layout = kv_layout::contiguous;
  world.engine.max_model_len = token_count{160};
  const auto o = simulate(world);
  CHECK(o.usage.blocks_used_max == block_count{10});
  CHECK(o.usage.block_seconds == Catch::Approx(2));
  CHECK(o.usage.token_seconds == Catch::Approx(2.1));
}

TEST_CASE("the same run gives the same hash and the same times, again and again") {
  auto world =
      world_of({request_at(0, 300, 40), request_at(0.01, 200, 30), request_at(0.5, 90, 9)});
  world.engine.num_blocks = block_count{30};
  world.engine.max_model_len = token_count{400};
  const auto once = simulate(world);
  for (int i = 0; i < 3; ++i) {
    const auto again = simulate(world);
    CHECK(again.decision_log_hash == once.decision_log_hash);
    CHECK(again.end == once.end);
    for (std::size_t r = 0; r < 3; ++r) {
      CHECK(again.requests[r].first_token == once.requests[r].first_token);
      CHECK(again.requests[r].last_token == once.requests[r].last_token);
    }
  }
  world.engine.num_blocks = block_count{31};
  CHECK(simulate(world).decision_log_hash != once.decision_log_hash);
  world.decision_log = false;
  CHECK_FALSE(simulate(world).decision_log_kept);
}

TEST_CASE("an unusable number of replicas or configuration is refused, and nothing hangs") {
  auto world = world_of({request_at(0, 10, 3)});
  SECTION("65 replicas") {
    world.replicas = 65;
  }
  SECTION("no replica") {
    world.replicas = 0;
  }
  SECTION("a budget below the seats") {
    world.engine.max_num_batched_tokens = token_count{8};
  }
  CHECK_THROWS_AS(simulate(world), input_error);
}

TEST_CASE("round robin over two replicas runs two streams side by side") {
  auto world = world_of({request_at(0, 10, 2), request_at(0, 10, 2), request_at(0, 10, 2)});
  world.engine.max_num_seqs = 1;
  world.replicas = 2;
  const auto o = simulate(world);
  CHECK(o.requests[0].replica == 0);
  CHECK(o.requests[1].replica == 1);
  CHECK(o.requests[2].replica == 0);
  CHECK(o.requests[1].last_token == seconds_us(0.2));
  CHECK(o.requests[2].last_token == seconds_us(0.4));
  CHECK(o.blocks_total == block_count{2000});
}
