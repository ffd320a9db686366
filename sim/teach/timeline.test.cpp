// The lesson as a reader gets it: pictures, decisions and sums of a run worked
// out by hand (small_world.hpp), and the runs that it refuses.
#include "sim/teach/timeline.hpp"

#include <algorithm>
#include <sstream>

#include "core/error.hpp"
#include "sim/teach/small_world.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::sim;
using namespace octavo::sim::teach;

namespace {

std::string printed(const simulation_options& base, const timeline_options& options) {
  std::ostringstream out;
  print_timeline(base, options, out);
  return out.str();
}

/// 36 columns of time behind names of 8: 60 ms at 3 columns for 5 ms.
timeline_options narrow() {
  timeline_options options;
  options.columns = 45;
  options.utf8 = false;
  return options;
}

/// Spaces and line breaks as one space, so that broken lines can be searched.
std::string flat(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const char shown = c == '\n' ? ' ' : c;
    if (shown != ' ' || out.empty() || out.back() != ' ') out += shown;
  }
  return out;
}

std::string refusal(const simulation_options& base, const timeline_options& options) {
  std::ostringstream out;
  try {
    print_timeline(base, options, out);
  } catch (const input_error& error) {
    CHECK(out.str().empty());
    return error.what();
  }
  FAIL("the run was not refused");
  return {};
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the lesson draws both policies on one scale") {
  const std::string text = printed(three_requests(), narrow());
  const std::string picture_static =
      "static: 60.0 ms in all, 6 steps\n"
      "time     |0 ms       |20 ms      |40 ms      \n"
      "step     1     2     3     4     5     6     \n"
      "0        PPPPPPDDDDDDDDDDDDDDDDDD            \n"
      "1        PPPxxxDDDDDDxxxxxxxxxxxx            \n"
      "2                 ...............PPPPPPDDDDDD\n"
      "at work  222111222222111111111111111111111111\n";
  const std::string picture_continuous =
      "continuous: 40.0 ms in all, 4 steps\n"
      "time     |0 ms       |20 ms      |40 ms      \n"
      "step     1     2     3     4                 \n"
      "0        PPPPPPDDDDDDDDDDDDDDDDDD            \n"
      "1        PPPPPPDDDDDD                        \n"
      "2                 ...PPPPPPDDDDDD            \n"
      "at work  222222222222222222222222            \n";
  CHECK(holds(text, picture_static));
  CHECK(holds(text, picture_continuous));
  CHECK(text.find(picture_static) < text.find(picture_continuous));
}

TEST_CASE("a wide terminal shows the policies side by side") {
  timeline_options options = narrow();
  options.columns = 2 * (9 + 60) + 3;
  options.decisions = false;
  const std::string text = printed(three_requests(), options);
  const std::string left = "0        " + std::string(10, 'P') + std::string(30, 'D');
  const std::string right = left;
  CHECK(holds(text, left + std::string(20 + 3, ' ') + right + std::string(20, ' ') + "\n"));
  options.columns -= 1;
  CHECK_FALSE(holds(printed(three_requests(), options), "static: 60.0 ms in all, 6 steps  "));
}

TEST_CASE("every decision is told once, with its reason") {
  timeline_options options = narrow();
  options.columns = 100;
  options.policies = {policy_kind::static_batch};
  const std::string text = flat(printed(three_requests(), options));
  CHECK(holds(text,
              "step 1 0 ms arrives 0 (8-token prompt), 1 (4-token prompt) admitted 0 and 1: "
              "there is budget, a slot and memory. prefill 0 (8 tokens), 1 (4 tokens + 4 of "
              "padding)"));
  CHECK(holds(text, "step 2 10.0 ms decode 0 and 1: one token each."));
  CHECK(holds(text,
              "steps 3-4 20.0 ms arrives 2 (4-token prompt, at 15.0 ms) finished 1: the "
              "model ended the text. decode 0: one token each. waste 1: the text has ended, "
              "the batch has not; a padding token each. waits 2: a static batch of 2 runs "
              "until its longest request ends."));
  CHECK(holds(text,
              "step 5 40.0 ms finished 0: the model ended the text. admitted 2: there is "
              "budget, a slot and memory. prefill 2 (4 tokens)"));
  CHECK(holds(text, "no step 60.0 ms finished 2: the model ended the text."));
}

TEST_CASE("the lesson ends with sums and a sentence made from them") {
  timeline_options options = narrow();
  options.columns = 100;
  options.decisions = false;
  const std::string text = flat(printed(three_requests(), options));
  CHECK(holds(text, "makespan (arrival to last token) 60.0 ms 40.0 ms "));
  CHECK(holds(text, "mean TTFT (time to first token) 18.3 ms 11.7 ms "));
  CHECK(holds(text, "longest gap between two tokens 10.0 ms 10.0 ms "));
  CHECK(holds(text, "mean wait in the queue 8.3 ms 1.7 ms "));
  CHECK(holds(text, "tokens generated per second 133.3 200.0 "));
  CHECK(holds(text, "computed tokens wasted 22 % 0 % "));  // 6 of 27
  CHECK(holds(text,
              "continuous ends 1.5 times sooner than static, because 22 % of the tokens that "
              "static computes are padding (continuous: 0 % wasted), and under static a "
              "request waits 8.3 ms on average instead of 1.7 ms, mostly for a static batch "
              "to end."));
}

TEST_CASE("plain text is ASCII, with names from a trace made harmless") {
  simulation_options base = three_requests();
  auto trace = std::make_shared<traces::trace>(*base.trace);
  trace->ids = {"caf\xc3\xa9", "\x1b[31mred", "2"};
  base.trace = trace;
  const std::string text = printed(base, narrow());
  CHECK(std::ranges::all_of(text, [](char c) { return c == '\n' || (c >= ' ' && c < 127); }));
  CHECK(holds(text, "0 caf??"));
}

TEST_CASE("the lesson starts its clock at the first arrival") {
  const std::string text = printed(small_world({{5000, 4, 2}}), narrow());
  CHECK(holds(text, "|0 ms"));
  CHECK(holds(text, "step 1        0 ms"));
  CHECK_FALSE(holds(text, "5.0"));
}

TEST_CASE("what cannot be read is refused with what to do") {
  timeline_options options = narrow();
  options.requests_max = 2;
  CHECK(holds(refusal(three_requests(), options), "3 requests and more than 2 rows"));
  CHECK(holds(refusal(three_requests(), options), "--requests 2"));
  simulation_options two = three_requests();
  two.work.requests = 2;
  CHECK_FALSE(printed(two, options).empty());

  options = narrow();
  options.steps_max = 5;
  const std::string long_run = refusal(three_requests(), options);
  CHECK(holds(long_run, "under static the run has 6 steps and more than 5"));
  CHECK(holds(long_run, "--chrome-trace"));

  options = narrow();
  simulation_options fleet = three_requests();
  fleet.replicas = 2;
  CHECK(holds(refusal(fleet, options), "one replica, not 2"));
  options.columns = 39;
  CHECK(holds(refusal(three_requests(), options), "at least 40"));
  options = narrow();
  options.policies.clear();
  CHECK(holds(refusal(three_requests(), options), "no policy"));
  CHECK(holds(refusal(small_world({}), narrow()), "no request"));
}

TEST_CASE("a run in which nobody gets a token is drawn and not compared") {
  const std::string text = flat(printed(small_world({{0, 20, 4}}), narrow()));
  CHECK(holds(text, "R rejected"));
  CHECK(holds(text, "There is nothing to compare: no token was generated under static."));
}
