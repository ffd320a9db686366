// Routing by hand: each choice follows from what was sent before and what has
// finished since.
#include "core/router.hpp"

#include "core/error.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using Catch::Matchers::ContainsSubstring;

namespace {

block_key key(std::uint64_t id) {
  return {id, 1};
}

request_spec prompt_of(std::uint64_t id, std::int32_t tokens,
                       std::initializer_list<std::uint64_t> blocks = {}) {
  request_spec spec;
  spec.id = request_id{id};
  spec.prompt_tokens = token_count{tokens};
  spec.max_tokens = token_count{1};
  for (const std::uint64_t block : blocks) spec.keys.push_back(key(block));
  return spec;
}

}  // namespace

TEST_CASE("round robin goes in turn, whatever the requests are") {
  router r{router_kind::round_robin, 3};
  for (std::uint64_t id = 0; id < 7; ++id) {
    const route chosen = r.choose(prompt_of(id, id == 0 ? 100'000 : 1));
    CHECK(chosen.replica == id % 3);
    CHECK(chosen.why == route_reason::in_turn);
  }
}

TEST_CASE("least loaded counts outstanding prompt tokens; the lowest number wins a tie") {
  router r{router_kind::least_loaded, 3};
  CHECK(r.choose(prompt_of(0, 100)).replica == 0);  // all idle
  CHECK(r.choose(prompt_of(1, 10)).replica == 1);   // 100 0 0
  CHECK(r.choose(prompt_of(2, 10)).replica == 2);   // 100 10 0
  CHECK(r.choose(prompt_of(3, 5)).replica == 1);    // 100 10 10
  CHECK(r.choose(prompt_of(4, 1)).replica == 2);    // 100 15 10
  r.finished(request_id{0});
  CHECK(r.choose(prompt_of(5, 1)).replica == 0);  // 0 15 11
  CHECK(r.replica_of(request_id{5}) == 0);
  CHECK(r.replica_of(request_id{0}) == 3);        // no longer known
  r.finished(request_id{0});                      // a second time changes nothing
  CHECK(r.choose(prompt_of(6, 1)).replica == 0);  // 1 15 11
}

TEST_CASE("prefix affinity follows the longest prefix sent before") {
  router r{router_kind::prefix_affinity, 3};
  const route first = r.choose(prompt_of(0, 48, {1, 2, 3}));
  CHECK(first.replica == 0);
  CHECK(first.why == route_reason::least_loaded);
  CHECK(r.choose(prompt_of(1, 32, {7, 8})).replica == 1);
  const route follows = r.choose(prompt_of(2, 64, {1, 2, 4, 5}));
  CHECK(follows.replica == 0);  // though it is the busiest
  CHECK(follows.why == route_reason::longest_prefix);
  CHECK(follows.matched_blocks == 2);
  // Block 2 behind another beginning is no match of block 1's chain.
  const route fresh = r.choose(prompt_of(3, 16, {9, 2}));
  CHECK(fresh.replica == 2);
  CHECK(fresh.matched_blocks == 0);
}

TEST_CASE("where several replicas know a prefix, the longest match wins, then the load") {
  router r{router_kind::prefix_affinity, 3};
  static_cast<void>(r.choose(prompt_of(0, 70'000, {1})));  // replica 0
  static_cast<void>(r.choose(prompt_of(1, 10, {1, 2})));   // relieved: replica 1
  CHECK(r.replica_of(request_id{1}) == 1);
  CHECK(r.choose(prompt_of(2, 10, {1, 2, 3})).replica == 1);  // only 1 knows block 2
  const route equal = r.choose(prompt_of(3, 10, {1}));        // both know it; 1 has less to do
  CHECK(equal.replica == 1);
  CHECK(equal.matched_blocks == 1);
}

TEST_CASE("a replica that is much busier than the least loaded one is relieved") {
  router r{router_kind::prefix_affinity, 2};
  static_cast<void>(r.choose(prompt_of(0, 65'536, {1})));
  CHECK(r.choose(prompt_of(1, 1, {1})).why == route_reason::longest_prefix);  // 65,536 apart
  const route relieved = r.choose(prompt_of(2, 1, {1}));                      // 65,537 apart
  CHECK(relieved.why == route_reason::relieved);
  CHECK(relieved.replica == 1);
  r.finished(request_id{0});
  CHECK(r.choose(prompt_of(3, 1, {1})).why == route_reason::longest_prefix);
}

TEST_CASE("twice the least load is not yet reason enough for relief") {
  router r{router_kind::prefix_affinity, 2};
  static_cast<void>(r.choose(prompt_of(0, 200'000, {1})));
  static_cast<void>(r.choose(prompt_of(1, 100'000, {2})));
  CHECK(r.choose(prompt_of(2, 1, {1})).why == route_reason::longest_prefix);  // 200,000 : 100,000
  CHECK(r.choose(prompt_of(3, 1, {1})).why == route_reason::relieved);        // 200,001 : 100,000
}

TEST_CASE("a request without keys goes to the least loaded replica") {
  router r{router_kind::prefix_affinity, 2};
  CHECK(r.choose(prompt_of(0, 10)).replica == 0);
  CHECK(r.choose(prompt_of(1, 5)).replica == 1);
  CHECK(r.choose(prompt_of(2, 1)).replica == 1);
}

TEST_CASE("1 to 64 replicas are allowed, and the last of 64 is reached") {
  CHECK_THROWS_WITH((router{router_kind::round_robin, 0}), ContainsSubstring("1 to 64"));
  CHECK_THROWS_AS((router{router_kind::round_robin, 65}), input_error);
  router r{router_kind::prefix_affinity, 64};
  for (std::uint64_t id = 0; id < 64; ++id) {
    CHECK(r.choose(prompt_of(id, 1, {100 + id})).replica == id);
  }
  CHECK(r.choose(prompt_of(64, 1, {163})).replica == 63);
}

TEST_CASE("routers and their reasons have names that parse back") {
  for (const auto kind :
       {router_kind::round_robin, router_kind::least_loaded, router_kind::prefix_affinity}) {
    CHECK(parse_router(to_string(kind)) == kind);
  }
  CHECK_THROWS_WITH(parse_router("random"),
                    ContainsSubstring("round_robin, least_loaded, prefix_affinity"));
  CHECK(to_string(route_reason::relieved) == "relieved");
}
