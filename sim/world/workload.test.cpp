// What a client submits for a trace's request: limits, and keys of blocks for
// block sizes equal to, larger and smaller than the trace's.
#include "sim/world/workload.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/sim_world.hpp"

using namespace octavo;
using test::request_after;
using test::request_at;
using test::set_prefix;
using test::trace_of;

namespace {

constexpr std::int32_t trace_block = 16;

sim::workload workload_of(traces::trace trace, std::int32_t block_size,
                          sim::workload_options options = {}) {
  engine_config engine;
  engine.block_size = token_count{block_size};
  engine.max_model_len = token_count{2000};
  return {std::make_shared<traces::trace>(std::move(trace)), options, engine};
}

// Two prompts of as many tokens, as lists of prefix ids.
traces::trace two_prompts(std::int32_t tokens, const std::vector<std::uint64_t>& first,
                          const std::vector<std::uint64_t>& second) {
  traces::trace t = trace_of({request_at(0, tokens, 4), request_at(1, tokens, 4)});
  t.prefix_block = token_count{trace_block};
  set_prefix(t, 0, first);
  set_prefix(t, 1, second);
  return t;
}

std::size_t equal_leading_keys(const sim::workload& w) {
  const auto a = w.spec_of(0).keys;
  const auto b = w.spec_of(1).keys;
  std::size_t n = 0;
  while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
  return n;
}

// Ids 1, 2, 3 … with the one at `changed` replaced.
std::vector<std::uint64_t> ids(std::size_t count, std::size_t changed = 1000) {
  std::vector<std::uint64_t> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(i >= changed ? 9000 + i : i + 1);
  return all;
}

sim::workload_options first(std::uint32_t requests) {
  sim::workload_options options;
  options.requests = requests;
  return options;
}

sim::workload_options at_rate(double scale) {
  sim::workload_options options;
  options.rate_scale = scale;
  return options;
}

std::int32_t limit_of(std::int32_t prompt, std::int32_t output, std::int32_t max_tokens,
                      sim::workload_options options) {
  traces::trace t = trace_of({request_at(0, prompt, output)});
  t.requests[0].max_tokens = token_count{max_tokens};
  return workload_of(t, 16, options).spec_of(0).max_tokens.raw();
}

}  // namespace

TEST_CASE("equal block sizes: a key for each full block of the prompt, equal where the ids are") {
  const auto w = workload_of(two_prompts(64, ids(4), ids(4, 3)), 16);
  CHECK(w.spec_of(0).keys.size() == 4);
  CHECK(equal_leading_keys(w) == 3);
}

TEST_CASE("larger engine blocks are equal only where all they hold is") {
  // 1,040 tokens are 65 trace blocks; the first 40 of them, 640 tokens, are equal.
  const auto trace = two_prompts(1040, ids(65), ids(65, 40));
  CHECK(equal_leading_keys(workload_of(trace, 32)) == 20);
  CHECK(equal_leading_keys(workload_of(trace, 512)) == 1);
  CHECK(workload_of(trace, 512).spec_of(0).keys.size() == 2);
  CHECK(equal_leading_keys(workload_of(trace, 1024)) == 0);
}

TEST_CASE("smaller engine blocks are equal as far as whole trace blocks are") {
  const auto w = workload_of(two_prompts(64, ids(4), ids(4, 2)), 8);
  const auto keys = w.spec_of(0).keys;
  CHECK(keys.size() == 8);
  CHECK(keys[0] != keys[1]);  // two halves of one trace block are two blocks
  CHECK(equal_leading_keys(w) == 4);
}

TEST_CASE("engine blocks that straddle trace blocks take the id of their last token") {
  // Blocks of 24: tokens 0..23 and 24..47. The first two ids (32 tokens) are equal.
  const auto w = workload_of(two_prompts(64, ids(4), ids(4, 2)), 24);
  CHECK(w.spec_of(0).keys.size() == 2);
  CHECK(equal_leading_keys(w) == 1);
}

TEST_CASE("a partial last block has no key") {
  const auto trace = two_prompts(40, ids(3), ids(3));
  CHECK(workload_of(trace, 16).spec_of(0).keys.size() == 2);  // 32 of 40 tokens
  CHECK(workload_of(trace, 512).spec_of(0).keys.empty());     // not one block is full
}

TEST_CASE("without prefix caching or prefix ids there are no keys") {
  auto trace = two_prompts(64, ids(4), ids(4));
  engine_config off;
  off.enable_prefix_caching = false;
  CHECK(sim::workload(std::make_shared<traces::trace>(trace), {}, off).spec_of(0).keys.empty());
  trace.requests[0].prefix_count = 0;
  CHECK(workload_of(trace, 16).spec_of(0).keys.empty());
}

TEST_CASE("an answer's blocks have the keys by which the next turn asks for them") {
  traces::trace t = trace_of({request_at(0, 32, 17), request_after(0, 1, 64, 4)});
  t.prefix_block = token_count{trace_block};
  set_prefix(t, 0, {1, 2});
  set_prefix(t, 1, {1, 2, 7, 8});
  const auto w = workload_of(t, 16);
  CHECK(w.spec_of(0).keys.size() == 3);  // 49 tokens in all: the answer fills one block
  CHECK(equal_leading_keys(w) == 3);
}

TEST_CASE("a follower that does not continue the conversation lends the answer no keys") {
  traces::trace t = trace_of({request_at(0, 32, 17), request_after(0, 1, 64, 4)});
  t.prefix_block = token_count{trace_block};
  set_prefix(t, 0, {1, 2});
  SECTION("it begins otherwise") {
    set_prefix(t, 1, {5, 6, 7, 8});
  }
  SECTION("it is too short to hold the answer") {
    t.requests[1].prompt_tokens = token_count{48};
    set_prefix(t, 1, {1, 2, 7});
  }
  SECTION("it has no ids") {}
  CHECK(workload_of(t, 16).spec_of(0).keys.size() == 2);
}

TEST_CASE("a request's limit: the trace's own, or one of three assumptions") {
  using sim::assumed_limit;
  const sim::workload_options context;
  sim::workload_options exact;
  exact.limit = assumed_limit::exact;
  sim::workload_options fixed;
  fixed.limit = assumed_limit::fixed;
  fixed.fixed_tokens = token_count{300};
  CHECK(limit_of(100, 20, 0, context) == 1900);  // up to the model's 2,000
  CHECK(limit_of(100, 20, 0, exact) == 20);
  CHECK(limit_of(100, 20, 0, fixed) == 300);
  CHECK(limit_of(1900, 20, 0, fixed) == 100);  // no more than the model takes
  for (const auto& options : {context, exact, fixed}) {
    CHECK(limit_of(100, 20, 55, options) == 55);
    // What the model can never hold is sent uncut, to be refused in the open.
    CHECK(limit_of(1990, 20, 0, options) == 20);
  }
}

TEST_CASE("rate-scale divides arrivals, rounded to microseconds; requests cuts the trace") {
  const auto trace =
      trace_of({request_at(0.000001, 1, 1), request_at(3, 1, 1), request_at(9, 1, 1)});
  const auto fast = workload_of(trace, 16, at_rate(3));
  CHECK(fast.arrival(0) == micros{0});
  CHECK(fast.arrival(1) == micros{1'000'000});
  CHECK(workload_of(trace, 16, at_rate(0.5)).arrival(2) == micros{18'000'000});
  CHECK(workload_of(trace, 16, first(2)).size() == 2);
  CHECK(workload_of(trace, 16, first(5)).size() == 3);
}

TEST_CASE("followers are those that wait for a request and are not cut off") {
  const auto trace = trace_of({request_at(0, 1, 1), request_after(0, 1, 1, 1),
                               request_after(0, 2, 1, 1), request_after(1, 1, 1, 1)});
  CHECK(workload_of(trace, 16).followers_of(0) == std::vector<std::uint32_t>{1, 2});
  CHECK(workload_of(trace, 16, first(2)).followers_of(0) == std::vector<std::uint32_t>{1});
  CHECK(workload_of(trace, 16).followers_of(3).empty());
}
