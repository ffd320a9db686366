// A request's life in words, against runs worked out by hand (small_world.hpp).
#include "sim/teach/explain.hpp"

#include <sstream>

#include "core/error.hpp"
#include "sim/teach/small_world.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::sim;
using namespace octavo::sim::teach;

namespace {

/// With spaces and line breaks as one space.
std::string explained(const simulation_options& options, std::uint32_t index) {
  std::ostringstream out;
  explain_request(options, index, out);
  std::string text;
  for (const char c : out.str()) {
    const char shown = c == '\n' ? ' ' : c;
    if (shown != ' ' || text.empty() || text.back() != ' ') text += shown;
  }
  return text;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string refusal(const simulation_options& options, std::uint32_t index) {
  std::ostringstream out;
  try {
    explain_request(options, index, out);
  } catch (const input_error& error) {
    return error.what();
  }
  FAIL("the request was not refused");
  return {};
}

}  // namespace

TEST_CASE("explain tells a static batch's late comer why it waits") {
  simulation_options options = three_requests();
  options.engine.policy = policy_kind::static_batch;
  const std::string text = explained(options, 2);
  CHECK(holds(text,
              "15.0 ms Arrives with a prompt of 4 tokens; it may generate 12. Before it: in "
              "the queue nobody, running 0 and 1."));
  CHECK(holds(text, "15.0 ms 5.0 ms Waits: a step runs, and decisions are made between steps."));
  CHECK(holds(text,
              "20.0 ms 20.0 ms steps 3-4 Waits: a static batch of 2 runs until its longest "
              "request ends."));
  CHECK(holds(text, "40.0 ms Admitted: there is budget, a slot and memory."));
  CHECK(holds(text, "40.0 ms 10.0 ms step 5 Prefill: 4 tokens."));
  CHECK(holds(text, "50.0 ms First token, 35.0 ms after arrival."));
  CHECK(holds(text, "50.0 ms 10.0 ms step 6 Decode: 1 token, one a step."));
  CHECK(holds(text, "60.0 ms Finished: the model ended the text."));
  CHECK(holds(text,
              "Where its 45.0 ms went in the queue 25.0 ms 56 % prefill 10.0 ms 22 % decode "
              "10.0 ms 22 %"));
  CHECK(holds(text,
              "What it waited for, of 25.0 ms between_steps 5.0 ms 20 % static_batch_running "
              "20.0 ms 80 %"));
}

TEST_CASE("explain tells of padding and of a place held after the end") {
  simulation_options options = three_requests();
  options.engine.policy = policy_kind::static_batch;
  const std::string text = explained(options, 1);
  CHECK(holds(text, "Prefill: 4 tokens, padded by 4 to the longest prompt."));
  CHECK(holds(text,
              "20.0 ms 20.0 ms steps 3-4 Its place stays taken, with a padding token each "
              "step, until the batch ends."));
  CHECK(holds(text,
              "4 computed in prefill, 6 of padding, 2 generated; longest gap between two 10.0 "
              "ms."));
}

TEST_CASE("explain tells who stands before a waiting request") {
  // Two seats: 2 waits for one, 3 stands behind it; both get in at 30 ms.
  const std::string text = explained(small_world({{0, 4, 3}, {0, 4, 3}, {5, 4, 1}, {5, 4, 1}}), 3);
  CHECK(holds(text, "Before it: in the queue 2, running 0 and 1."));
  CHECK(holds(text,
              "10.0 ms 20.0 ms steps 2-3 Waits: it stands behind request 2 in the "
              "queue. Of that one: Waits: 2 sequences run, the most that may run at once "
              "is 2."));
  CHECK(holds(text, "behind_head, itself batch_full 20.0 ms 80 %"));
  CHECK(holds(text, "30.0 ms Admitted"));
}

TEST_CASE("explain tells of chunks, and of a step cut to its budget") {
  // 12 tokens at 5 a step: 5, 5 and 2.
  simulation_options options = small_world({{0, 12, 2}});
  options.engine.max_num_batched_tokens = token_count{5};
  const std::string text = explained(options, 0);
  CHECK(holds(text, "0 ms 30.0 ms steps 1-3 Prefill: 12 tokens in 3 chunks."));
  CHECK(holds(text, "30.0 ms First token, 30.0 ms after arrival."));
}

TEST_CASE("explain tells for whom a request was preempted, and what it cost") {
  // As in recording.test.cpp: preempted at 50 ms, back at 80 ms, done at 110 ms.
  simulation_options options = small_world({{0, 4, 8}, {0, 4, 8}});
  options.engine.num_blocks = block_count{4};
  options.engine.enable_prefix_caching = false;
  const std::string text = explained(options, 1);
  CHECK(holds(text, "10.0 ms 40.0 ms steps 2-5 Decode: 4 tokens"));
  CHECK(holds(text, "50.0 ms Preempted: its blocks were needed for request 0."));
  CHECK(holds(text, "80.0 ms Resumed after preemption, 0 tokens found in the prefix cache."));
  CHECK(holds(text, "80.0 ms 10.0 ms step 9 Prefill: 9 tokens."));
  CHECK(holds(text, "in the queue again after preemption 30.0 ms 27 %"));
  CHECK(holds(text, "longest gap between two 40.0 ms. Preemptions: 1."));
}

TEST_CASE("explain tells of a prefix hit") {
  simulation_options options = small_world({{0, 8, 2}, {30, 8, 2}});
  auto trace = std::make_shared<traces::trace>(*options.trace);
  trace->prefix_block = token_count{4};
  trace->prefix_ids = {1, 2};
  for (traces::request& r : trace->requests) r.prefix_count = 2;
  options.trace = trace;
  const std::string text = explained(options, 1);
  // Its last block is computed, hit or not: one token at least must run. Step 3
  // gave back the first one's blocks.
  CHECK(holds(text, "30.0 ms Admitted with 4 tokens already in the prefix cache."));
  CHECK(holds(text, "30.0 ms 10.0 ms step 4 Prefill: 4 tokens."));
  CHECK(holds(text, "Tokens: 4 found in the prefix cache, 4 computed in prefill, 2 generated"));
}

TEST_CASE("explain finds the replica that served a request") {
  // Round robin: 0 and 2 on replica 0, 1 on replica 1.
  simulation_options options = three_requests();
  options.replicas = 2;
  CHECK(holds(explained(options, 1), "Request 1, on replica 1"));
  const std::string text = explained(options, 2);
  CHECK(holds(text, "Request 2, on replica 0"));
  CHECK(holds(text, "in the queue nobody, running 0."));
}

TEST_CASE("explain tells why a request was refused") {
  const std::string text = explained(small_world({{0, 20, 4}}), 0);
  CHECK(holds(text,
              "0 ms Rejected: prompt and output come to 24 tokens; the most allowed "
              "(max-model-len) is 16."));
}

TEST_CASE("explain tells of the token computed past an end") {
  simulation_options options = small_world({{0, 4, 2}});
  options.engine.run_ahead = 1;
  CHECK(holds(explained(options, 0),
              "20.0 ms 10.0 ms step 3 A step planned ahead computes a token past its end."));
}

TEST_CASE("a request that is not there is refused with those that are") {
  CHECK(refusal(three_requests(), 3) == "explain: there is no request 3; the run has 0 to 2");
  simulation_options cut = three_requests();
  cut.work.requests = 2;
  CHECK(refusal(cut, 2) == "explain: there is no request 2; the run has 0 to 1");
  CHECK(refusal(small_world({}), 0) == "explain: there is no request 0; the run has none");
}

TEST_CASE("a request whose forerunner did not complete never arrives") {
  simulation_options options = small_world({{0, 20, 4}, {0, 4, 1}});
  auto trace = std::make_shared<traces::trace>(*options.trace);
  trace->requests[1].after = 0;
  options.trace = trace;
  CHECK(holds(explained(options, 1), "Request 1 never arrived"));
}
