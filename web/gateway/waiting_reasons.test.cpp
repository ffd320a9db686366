// Why requests wait, from the scheduler's records.
#include "web/gateway/waiting_reasons.hpp"

#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::gateway;

namespace {

held_record held(std::uint64_t id, reason why) {
  return {{request_id{id}, 0}, why, 0, 0};
}

std::int64_t sum_of(const waiting_reasons& all) {
  std::int64_t sum = 0;
  for (const reason why : waiting_reasons::all) sum += all.count(why);
  return sum;
}

}  // namespace

TEST_CASE("every waiting request counts once: those explained by their reason, others as behind") {
  waiting_reasons reasons;
  CHECK(sum_of(reasons) == 0);
  decision_record record;
  record.held = {held(7, reason::chunked_to_budget), held(1, reason::no_free_blocks),
                 held(2, reason::no_budget)};
  record.behind = 9;  // behind the head
  reasons.on_record(record);
  CHECK(reasons.count(reason::no_free_blocks) == 1);
  CHECK(reasons.count(reason::no_budget) == 1);
  CHECK(reasons.count(reason::behind_head) == 8);
  CHECK(sum_of(reasons) == 10);
}

TEST_CASE("what runs in chunks does not wait, and an empty queue has no reasons") {
  waiting_reasons reasons;
  decision_record record;
  record.held = {held(1, reason::batch_full)};
  record.behind = 3;
  reasons.on_record(record);
  REQUIRE(sum_of(reasons) == 4);
  record.clear();
  record.held = {held(7, reason::chunked_to_budget)};
  reasons.on_record(record);
  CHECK(sum_of(reasons) == 0);
}
