// Work on the other thread: what is told, in which order, what is dropped and what is refused.
#include "web/gateway/preparer.hpp"

#include <latch>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/posted_work.hpp"

using namespace octavo;
using namespace octavo::gateway;
using octavo::testing::posted_work;

namespace {

struct bench {
  explicit bench(preparer_limits limits = {}) : worker(posted.taker(), limits) {}
  /// Keeps the worker busy until `open`.
  void block() {
    worker.run(
        10,
        [this] {
          begun.count_down();
          open.wait();
          return 0;
        },
        [this](outcome<int>) { lines.push_back("blocker"); });
    begun.wait();
  }
  std::uint64_t say(const std::string& line, std::size_t bytes = 10) {
    return worker.run(
        bytes, [line] { return line; },
        [this](outcome<std::string> got) { lines.push_back(std::get<std::string>(got)); });
  }

  std::latch begun{1};
  std::latch open{1};
  std::vector<std::string> lines;
  posted_work posted;
  preparer worker;
};

}  // namespace

TEST_CASE("works are told in their order, and what they throw is their outcome") {
  bench b;
  b.say("one");
  const auto told = [&](outcome<int> got) {
    const auto& why = std::get<api::api_error>(got);
    b.lines.push_back(std::to_string(why.status) + " " + why.message);
  };
  b.worker.run(
      1, []() -> int { throw api::invalid_request("prompt", "too long"); }, told);
  b.worker.run(
      1, []() -> int { throw std::runtime_error("lost"); }, told);
  b.say("two");
  CHECK(b.worker.live() == 4);
  for (int i = 0; i < 4; ++i) b.posted.run_next();
  CHECK(b.lines == std::vector<std::string>{"one", "400 too long",
                                            "500 the prompt could not be prepared: lost", "two"});
  CHECK(b.worker.live() == 0);
}

TEST_CASE("of a forgotten job nothing is told, whether it waits, runs or has been worked on") {
  bench b;
  b.block();
  const auto waits = b.say("waits");
  const auto last = b.say("last");
  b.worker.forget(waits);
  b.worker.forget(waits);
  b.worker.forget(1);  // the one that runs
  CHECK(b.worker.live() == 1);
  b.open.count_down();
  b.posted.run_next();
  b.posted.wait();
  b.worker.forget(last);
  b.posted.run_next();
  CHECK(b.lines.empty());
  CHECK(b.worker.live() == 0);
}

TEST_CASE("too many jobs or bytes are refused until there is room; one of any size is taken") {
  bench b{{.jobs_max = 3, .bytes_max = 100}};
  b.say("huge", 1000);
  b.posted.run_next();
  b.block();
  const auto wide = b.say("wide", 90);
  const auto status = [&](std::size_t bytes) {
    try {
      b.say("more", bytes);
      return 200;
    } catch (const api::api_error& why) {
      return why.status;
    }
  };
  CHECK(status(1) == 503);
  b.worker.forget(wide);
  CHECK(status(1) == 200);
  CHECK(status(1) == 200);
  CHECK(status(1) == 503);
  b.open.count_down();
  for (int i = 0; i < 3; ++i) b.posted.run_next();
  CHECK(b.lines == std::vector<std::string>{"huge", "blocker", "more", "more"});
}

TEST_CASE("a stop waits for the work under way, drops the rest and refuses what comes") {
  bench b;
  b.block();
  b.say("dropped");
  std::thread stops{[&] { b.worker.stop(); }};
  b.open.count_down();
  stops.join();
  b.worker.stop();
  CHECK_THROWS_AS(b.say("late"), api::api_error);
  CHECK(b.posted.size() <= 2);
}
