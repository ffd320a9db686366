// The front door: who gets which request, and who hears of it.
#include "actors/engine_actor.hpp"

#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/conversation.hpp"

using namespace octavo;
using Catch::Matchers::ContainsSubstring;
using test::conversation;
using test::held_ring;
using test::lines;

namespace {

engine_config small() {
  engine_config c;
  c.block_size = token_count{4};
  c.num_blocks = block_count{32};
  c.max_model_len = token_count{64};
  c.max_num_seqs = 4;
  c.max_num_batched_tokens = token_count{32};
  return c;
}

request_spec request(std::uint64_t id, std::int32_t max_tokens = 2) {
  request_spec spec;
  spec.id = request_id{id};
  spec.prompt_tokens = token_count{6};
  spec.max_tokens = token_count{max_tokens};
  return spec;
}

class routes final : public actors::route_observer {
 public:
  void on_route(request_id id, const route& chosen) override {
    all.emplace_back(id.raw(), chosen.replica);
  }
  std::vector<std::pair<std::uint64_t, std::uint32_t>> all;
};

// An engine over some replicas, and two clients.
struct scene {
  explicit scene(std::uint32_t replicas, router_kind kind = router_kind::round_robin) {
    std::vector<actors::scheduler_actor> schedulers;
    for (std::uint32_t i = 0; i < replicas; ++i) {
      rings.push_back(c.spawn_ring(small(), i));
      schedulers.push_back(rings.back().actors.scheduler);
    }
    engine = c.spawn<actors::engine_shell>(kind, std::move(schedulers), &seen);
  }

  void run() {
    c.pump();
    for (int steps = 0; steps < 1000; ++steps) {
      bool any = false;
      for (const held_ring& ring : rings) any = c.answer(ring) || any;
      if (!any) return;
      c.pump();
    }
    FAIL("the engine does not come to rest");
  }

  routes seen;
  conversation c;
  std::vector<held_ring> rings;
  actors::engine_actor engine;
  std::shared_ptr<test::heard> heard_a = std::make_shared<test::heard>();
  std::shared_ptr<test::heard> heard_b = std::make_shared<test::heard>();
  actors::sink_actor client_a = c.spawn_client("client a", heard_a);
  actors::sink_actor client_b = c.spawn_client("client b", heard_b);
};

}  // namespace

TEST_CASE("engine: with one replica events go to the client without a detour") {
  scene s{1};
  s.c.submit(s.engine, s.client_a, request(1, 1));
  s.c.pump();
  s.c.answer(s.rings[0]);
  const lines said = s.c.said();
  CHECK(std::ranges::count(said, "client a > engine: submit") == 1);
  CHECK(std::ranges::count(said, "engine > scheduler: submit") == 1);
  CHECK(std::ranges::count(said, "scheduler > client a: events") >= 1);
  CHECK(std::ranges::count(said, "scheduler > engine: events") == 0);
  CHECK(s.seen.all.empty());  // there was nothing to choose
}

TEST_CASE("engine: three replicas take turns, and each client hears only its own") {
  const std::uint32_t replicas = GENERATE(1U, 3U);
  scene s{replicas};
  for (std::uint64_t id = 1; id <= 6; ++id) {
    s.c.submit(s.engine, id % 2 == 1 ? s.client_a : s.client_b, request(id));
  }
  s.run();
  if (replicas == 3) {
    const std::vector<std::pair<std::uint64_t, std::uint32_t>> in_turn{{1, 0}, {2, 1}, {3, 2},
                                                                       {4, 0}, {5, 1}, {6, 2}};
    CHECK(s.seen.all == in_turn);
  }
  for (std::uint64_t id = 1; id <= 6; ++id) {
    INFO("request " << id);
    CHECK(s.heard_a->times_ended(id) == (id % 2 == 1 ? 1 : 0));
    CHECK(s.heard_b->times_ended(id) == (id % 2 == 1 ? 0 : 1));
  }
  CHECK(s.heard_a->tokens.size() == 6);
  CHECK(s.heard_b->tokens.size() == 6);
}

TEST_CASE("engine: a batch is divided among the replicas in its order") {
  scene s{3};
  auto batch = std::make_shared<std::vector<request_spec>>();
  for (std::uint64_t id = 1; id <= 5; ++id) batch->push_back(request(id));
  caf::send_as(s.client_a, s.engine, actors::submit_atom::value, actors::submit_batch{batch},
               s.client_a);
  const lines said = s.c.said();
  CHECK(std::ranges::count(said, "engine > scheduler: submit") == 3);
  REQUIRE(s.rings[0].held->size() == 1);
  CHECK(s.rings[0].held->front()->work.size() == 2);  // 1 and 4
  CHECK(s.rings[1].held->front()->work.size() == 2);  // 2 and 5
  CHECK(s.rings[2].held->front()->work.size() == 1);
  s.run();
  CHECK(s.heard_a->ends.size() == 5);
}

TEST_CASE("engine: a finished request no longer counts as load") {
  scene s{2, router_kind::least_loaded};
  s.c.submit(s.engine, s.client_a, request(1));  // to 0
  s.c.submit(s.engine, s.client_a, request(2));  // to 1
  s.c.pump();
  for (int steps = 0; steps < 2; ++steps) {
    s.c.answer(s.rings[1]);
    s.c.pump();
  }
  REQUIRE(s.heard_a->times_ended(2) == 1);
  s.c.submit(s.engine, s.client_a, request(3));
  s.run();
  REQUIRE(s.seen.all.size() == 3);
  CHECK(s.seen.all[2].second == 1);
}

TEST_CASE("engine: a cancel follows its submit to the same replica") {
  scene s{3};
  s.c.submit(s.engine, s.client_a, request(1, 8));
  s.c.submit(s.engine, s.client_b, request(2, 8));
  s.c.cancel(s.engine, s.client_b, 2);
  s.c.cancel(s.engine, s.client_b, 77);  // nobody
  s.run();
  CHECK(s.heard_a->why(1) == reason::finished_length);
  CHECK(s.heard_b->why(2) == reason::finished_cancelled);
  s.c.cancel(s.engine, s.client_a, 1);  // too late
  const lines said = s.c.said();
  CHECK(said.back() == "client a > engine: cancel");
  CHECK(s.heard_a->times_ended(1) == 1);
}

TEST_CASE("engine: a drain reaches every replica") {
  scene s{3};
  s.c.submit(s.engine, s.client_a, request(1));
  caf::send_as(s.client_a, s.engine, actors::drain_atom::value);
  for (std::uint64_t id = 2; id <= 4; ++id) s.c.submit(s.engine, s.client_a, request(id));
  s.run();
  CHECK(s.heard_a->why(1) == reason::finished_length);
  for (std::uint64_t id = 2; id <= 4; ++id) {
    CHECK(s.heard_a->why(id) == reason::rejected_draining);
  }
}

TEST_CASE("engine: statistics come from every replica, in order") {
  scene s{3};
  for (std::uint64_t id = 1; id <= 4; ++id) s.c.submit(s.engine, s.client_a, request(id));
  s.run();
  const auto all = s.c.ask<actors::statistics_list>(s.engine, actors::statistics_atom::value);
  REQUIRE(all.size() == 3);
  CHECK(all[0].completed == 2);
  CHECK(all[1].completed == 1);
  CHECK(all[2].completed == 1);
}

TEST_CASE("engine: statistics of a replica that is gone are an error, not a wait") {
  scene s{3};
  s.c.kill(s.rings[1].actors.scheduler);
  s.c.pump();
  CHECK_THROWS_WITH(s.c.ask<actors::statistics_list>(s.engine, actors::statistics_atom::value),
                    ContainsSubstring("no answer"));
}

TEST_CASE("engine: a request is explained by the replica that ran it, also after its end") {
  const std::uint32_t replicas = GENERATE(1U, 3U);
  scene s{replicas};
  for (std::uint64_t id = 1; id <= 3; ++id) s.c.submit(s.engine, s.client_a, request(id));
  s.c.pump();
  const auto explain = [&](std::uint64_t id) {
    return s.c.ask<std::string>(s.engine, actors::explain_atom::value, id);
  };
  CHECK_THAT(explain(1), ContainsSubstring("Submitted: 6 prompt tokens"));
  s.run();
  CHECK_THAT(explain(2), ContainsSubstring(sentence(reason::finished_length, 0, 0)));
  CHECK_THAT(explain(3), ContainsSubstring(sentence(reason::finished_length, 0, 0)));
  CHECK_THAT(explain(9), ContainsSubstring("9 is not known"));
}
