// What each request does at every moment, worked out by hand.
#include "sim/teach/recording.hpp"

#include "sim/teach/small_world.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::sim;
using namespace octavo::sim::teach;

namespace {

recording record(simulation_options options, policy_kind policy) {
  recorder heard{1000};
  options.engine.policy = policy;
  options.observers = {&heard};
  const simulation_outcome outcome = simulate(options);
  return make_recording(heard.records(), outcome.requests.size());
}

span from_to(int from_ms, int to_ms, activity what) {
  return {micros{from_ms * 1000}, micros{to_ms * 1000}, what};
}

/// Neighbouring spans of one kind as one.
std::vector<span> joined(const std::vector<span>& spans) {
  std::vector<span> out;
  for (const span& s : spans) {
    if (!out.empty() && out.back().what == s.what && out.back().to == s.from) {
      out.back().to = s.to;
    } else {
      out.push_back(s);
    }
  }
  return out;
}

std::vector<int> ms(const std::vector<micros>& times) {
  std::vector<int> out;
  for (const micros t : times) out.push_back(static_cast<int>(t.raw() / 1000));
  return out;
}

}  // namespace

TEST_CASE("continuous: a waiting request takes the place of one that ended") {
  const recording run = record(three_requests(), policy_kind::continuous);
  REQUIRE(run.lives.size() == 3);
  CHECK(joined(run.lives[0].spans) ==
        std::vector{from_to(0, 10, activity::prefill), from_to(10, 40, activity::decode)});
  CHECK(joined(run.lives[1].spans) ==
        std::vector{from_to(0, 10, activity::prefill), from_to(10, 20, activity::decode)});
  CHECK(joined(run.lives[2].spans) == std::vector{from_to(15, 20, activity::waiting),
                                                  from_to(20, 30, activity::prefill),
                                                  from_to(30, 40, activity::decode)});
  CHECK(ms(run.lives[0].token_times) == std::vector{10, 20, 30, 40});
  CHECK(ms(run.lives[2].token_times) == std::vector{30, 40});
  // Every token but each answer's last is computed: 8 + 3, 4 + 1, 4 + 1.
  CHECK(run.tokens.useful == 21);
  CHECK(run.tokens.wasted() == 0);
}

TEST_CASE("static: padding and held places are waste") {
  const recording run = record(three_requests(), policy_kind::static_batch);
  CHECK(joined(run.lives[0].spans) ==
        std::vector{from_to(0, 10, activity::prefill), from_to(10, 40, activity::decode)});
  // 4 of the 8 tokens of its first step are padding: half of its time.
  CHECK(joined(run.lives[1].spans) ==
        std::vector{from_to(0, 5, activity::prefill), from_to(5, 10, activity::waste),
                    from_to(10, 20, activity::decode), from_to(20, 40, activity::waste)});
  CHECK(joined(run.lives[2].spans) == std::vector{from_to(15, 40, activity::waiting),
                                                  from_to(40, 50, activity::prefill),
                                                  from_to(50, 60, activity::decode)});
  CHECK(run.tokens.useful == 21);
  CHECK(run.tokens.padding == 6);
  // Heard of at the boundary at 20 ms, it waits for the batch until 40 ms.
  CHECK(run.waited_us == std::map<reason, std::int64_t>{{reason::static_batch_running, 20'000}});
}

TEST_CASE("what preemption makes it compute again is waste") {
  // Two prompts of 4 tokens in a pool of 4 blocks of 4: each holds one block,
  // two from its 5th token on, and at the 9th the first takes the second's.
  simulation_options options = small_world({{0, 4, 8}, {0, 4, 8}});
  options.engine.num_blocks = block_count{4};
  options.engine.enable_prefix_caching = false;
  const recording run = record(options, policy_kind::continuous);
  // Prefill [0, 10), tokens 5 to 8 computed in four steps until 50 ms; then 0
  // goes on alone for tokens 9 to 11, and ends at 80 ms.
  CHECK(joined(run.lives[0].spans) ==
        std::vector{from_to(0, 10, activity::prefill), from_to(10, 80, activity::decode)});
  // 1 comes back with 9 known tokens, 8 of them computed before: 8/9 of 10 ms.
  const std::vector<span> second = joined(run.lives[1].spans);
  REQUIRE(second.size() == 6);
  CHECK(second[0] == from_to(0, 10, activity::prefill));
  CHECK(second[1] == from_to(10, 50, activity::decode));
  CHECK(second[2] == from_to(50, 80, activity::preempted));
  CHECK(second[3] == span{micros{80'000}, micros{88'888}, activity::waste});
  CHECK(second[4] == span{micros{88'888}, micros{90'000}, activity::prefill});
  CHECK(second[5] == from_to(90, 110, activity::decode));
  CHECK(run.tokens.recomputed == 8);
  CHECK(run.tokens.useful == 22);
  CHECK(ms(run.lives[1].token_times) == std::vector{10, 20, 30, 40, 50, 90, 100, 110});
}

TEST_CASE("a step planned ahead of an end is waste") {
  simulation_options options = small_world({{0, 4, 2}});
  options.engine.run_ahead = 1;
  const recording run = record(options, policy_kind::continuous);
  CHECK(joined(run.lives[0].spans) == std::vector{from_to(0, 10, activity::prefill),
                                                  from_to(10, 20, activity::decode),
                                                  from_to(20, 30, activity::waste)});
  CHECK(run.tokens.useful == 5);
  CHECK(run.tokens.overrun == 1);
  CHECK(ms(run.lives[0].token_times) == std::vector{10, 20});
}

TEST_CASE("a refused request has a moment, not a life") {
  simulation_options options = small_world({{0, 4, 1}, {5, 20, 1}});
  const recording run = record(options, policy_kind::continuous);
  CHECK(run.lives[1].spans.empty());
  CHECK(run.lives[1].rejected == micros{5000});
  CHECK(run.lives[0].rejected < micros{0});
}

TEST_CASE("a recorder counts beyond its bound, and keeps no more than that") {
  recorder heard{2};
  simulation_options options = three_requests();
  options.observers = {&heard};
  const simulation_outcome outcome = simulate(options);
  CHECK(outcome.steps == 4);
  CHECK(heard.steps() == 4);
  CHECK(heard.records().size() == 2);
}
