// The sentence that compares two runs follows from their numbers alone.
#include "sim/teach/scoreboard.hpp"

#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::sim::teach;

namespace {

score scored(std::string name, int makespan_ms, int ttft_ms, int gap_ms, int wait_ms) {
  score s;
  s.name = std::move(name);
  s.makespan = micros{makespan_ms * 1000};
  s.ttft_mean = micros{ttft_ms * 1000};
  s.gap_max = micros{gap_ms * 1000};
  s.wait_mean = micros{wait_ms * 1000};
  s.tokens.useful = 100;
  return s;
}

}  // namespace

TEST_CASE("the sooner run is named, whichever came first") {
  score slow = scored("a", 200, 20, 10, 0);
  score fast = scored("b", 100, 20, 10, 0);
  slow.steps = 20;
  fast.steps = 10;
  const std::string text =
      "b ends 2.0 times sooner than a, because a takes 20 steps where b takes 10.";
  CHECK(comparison(slow, fast) == text);
  CHECK(comparison(fast, slow) == text);
}

TEST_CASE("the cause is the waste and the wait that differ") {
  score slow = scored("a", 200, 20, 10, 50);
  const score fast = scored("b", 100, 20, 10, 5);
  slow.tokens.recomputed = 100;
  slow.waited_for = reason::no_free_blocks;
  CHECK(comparison(slow, fast) ==
        "b ends 2.0 times sooner than a, because 50 % of the tokens that a computes are computed "
        "twice (b: 0 % wasted), and under a a request waits 50.0 ms on average instead of 5.0 ms, "
        "mostly for free KV blocks.");
}

TEST_CASE("what the sooner run costs is said") {
  const score slow = scored("a", 200, 20, 10, 0);
  CHECK(comparison(slow, scored("b", 100, 20, 30, 0)) ==
        "b ends 2.0 times sooner than a. Its price: the longest pause between two tokens is 30.0 "
        "ms instead of 10.0 ms.");
  CHECK(comparison(slow, scored("b", 100, 40, 10, 0)) ==
        "b ends 2.0 times sooner than a. Its price: the first token comes after 40.0 ms on average "
        "instead of 20.0 ms.");
}

TEST_CASE("runs that end together are compared by their first tokens") {
  const score a = scored("a", 100, 40, 10, 0);
  CHECK(comparison(a, scored("b", 102, 20, 10, 0)) ==
        "a and b end at about the same time, but under b the first token comes 2.0 times sooner.");
  CHECK(comparison(a, scored("b", 102, 41, 10, 0)) ==
        "a and b end at about the same time, and their first tokens come as soon.");
}

TEST_CASE("a longest gap is of one request, never across two") {
  recording run;
  run.lives.resize(2);
  run.lives[0].token_times = {micros{10}, micros{20}, micros{50}};
  run.lives[1].token_times = {micros{500}, micros{510}};
  const score s = score_of("x", run, {});
  CHECK(s.gap_max == micros{30});
  CHECK(s.makespan == micros{0});
}
