// The orders of the waiting queue.
#include "core/waiting_queue.hpp"

#include <vector>

#include "tests/support/catch.hpp"

using namespace octavo;

namespace {

// Four sequences: index, priority, prompt tokens; they arrive in this order.
std::vector<sequence> four() {
  const std::int32_t priorities[] = {2, 1, 2, 1};
  const std::int32_t prompts[] = {30, 40, 10, 10};
  std::vector<sequence> all(4);
  for (std::uint32_t i = 0; i < 4; ++i) {
    all[i].index = i;
    all[i].arrival = i;
    all[i].priority = priorities[i];
    all[i].prompt_tokens = token_count{prompts[i]};
  }
  return all;
}

std::vector<std::uint32_t> order_of(const waiting_queue& queue) {
  std::vector<std::uint32_t> order;
  for (const waiting_queue::entry& entry : queue) order.push_back(entry.sequence);
  return order;
}

using order = std::vector<std::uint32_t>;

order order_under(ordering_kind kind) {
  auto all = four();
  waiting_queue queue{kind};
  for (const std::uint32_t i : {3U, 1U, 0U, 2U}) queue.insert(all[i]);
  return order_of(queue);
}

}  // namespace

TEST_CASE("each ordering sorts by its rule, then by order of submission") {
  CHECK(order_under(ordering_kind::fcfs) == order{0, 1, 2, 3});
  CHECK(order_under(ordering_kind::priority) == order{1, 3, 0, 2});
  CHECK(order_under(ordering_kind::shortest_first) == order{2, 3, 0, 1});
}

TEST_CASE("a preempted sequence gets its old place back") {
  auto all = four();
  waiting_queue queue{ordering_kind::fcfs};
  for (sequence& s : all) queue.insert(s);
  queue.erase(all[0]);
  CHECK(order_of(queue) == order{1, 2, 3});
  all[0].output_tokens = token_count{5};
  queue.insert(all[0]);
  CHECK(order_of(queue) == order{0, 1, 2, 3});
}

TEST_CASE("samples of one request stand in their own order") {
  auto all = four();
  for (sequence& s : all) s.arrival = 0;
  all[0].sample = 3;
  all[3].sample = 0;
  all[1].sample = 1;
  all[2].sample = 2;
  waiting_queue queue{ordering_kind::fcfs};
  for (sequence& s : all) queue.insert(s);
  CHECK(order_of(queue) == order{3, 1, 2, 0});
}

TEST_CASE("tokens are counted as they were at insertion") {
  auto all = four();
  waiting_queue queue{ordering_kind::shortest_first};
  for (sequence& s : all) queue.insert(s);
  CHECK(queue.tokens() == 90);
  all[2].output_tokens = token_count{100};  // a late result of a step in flight
  queue.erase(all[2]);
  CHECK(queue.tokens() == 80);
  CHECK(queue.size() == 3);
  CHECK_FALSE(all[2].queued);
}
