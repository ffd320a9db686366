// The thread pool: every chunk once, whatever the number of threads and calls.
#include "cpu/thread_pool.hpp"

#include <chrono>
#include <numeric>
#include <thread>

#include "tests/support/catch.hpp"

using namespace octavo::cpu;

TEST_CASE("each chunk is computed exactly once in each of many calls") {
  for (const std::size_t threads : {1U, 2U, 4U}) {
    thread_pool pool{threads};
    CHECK(pool.threads() == threads);
    for (const std::size_t chunks : {0U, 1U, 3U, 100U}) {
      for (int call = 0; call < 200; ++call) {
        std::vector<std::atomic<int>> done(chunks);
        pool.run(chunks, [&](std::size_t i) { ++done[i]; });
        for (const auto& count : done) REQUIRE(count == 1);
      }
    }
  }
}

TEST_CASE("what chunks wrote is visible when the call returns") {
  thread_pool pool{3};
  std::vector<int> values(1000);
  for (int call = 1; call <= 100; ++call) {
    pool.run(values.size(), [&](std::size_t i) { values[i] += static_cast<int>(i); });
    const int sum = std::accumulate(values.begin(), values.end(), 0);
    REQUIRE(sum == call * 999 * 1000 / 2);
  }
}

TEST_CASE("sleeping workers wake for the next call") {
  thread_pool pool{2};
  for (int call = 0; call < 5; ++call) {
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
    std::atomic<int> done = 0;
    pool.run(10, [&](std::size_t) { ++done; });
    CHECK(done == 10);
  }
}
