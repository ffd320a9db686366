// The report for a person: the answer first, and no number that misleads.
#include "sim/report/text.hpp"

#include <sstream>

#include "tests/support/catch.hpp"
#include "tests/support/report_fixture.hpp"

using namespace octavo;
using Catch::Matchers::ContainsSubstring;
using sim::answer_sentence;
using sim::format_seconds;
using test::run_with;

namespace {

sim::run_summary good_summary() {
  sim::run_summary s;
  s.requests = {.submitted = 100, .completed = 100, .rejected = 0, .cancelled = 0, .failed = 0};
  s.requests_per_s = 11.8;
  s.ttft_s = {0.5, 0.4, 0.9, 1.0, 1.6, 2.5};
  s.ttft_at_objective_s = 1.6;
  s.tpot_at_objective_s = 0.04;
  return s;
}

sim::prepared_run two_h100() {
  auto run = run_with(1);
  run.gpu_name = "h100";
  run.gpus = 2;
  return run;
}

std::string report_of(const sim::prepared_run& run, const sim::run_summary& s) {
  std::ostringstream out;
  print_report(run, s, 0.5, out);
  return out.str();
}

}  // namespace

TEST_CASE("durations have three digits and the unit that fits") {
  CHECK(format_seconds(0) == "0 us");
  CHECK(format_seconds(0.000'25) == "250 us");
  CHECK(format_seconds(0.012'34) == "12.3 ms");
  CHECK(format_seconds(0.25) == "250 ms");
  CHECK(format_seconds(1.849) == "1.85 s");
  CHECK(format_seconds(99.6) == "100 s");
}

TEST_CASE("the answer is the report's first line and says what meets what, and what limits") {
  auto run = two_h100();
  auto s = good_summary();
  run.objectives.ttft_us = 2e6;
  s.limit = sim::limiting_factor::kv_memory;
  CHECK(answer_sentence(run, s) ==
        "2 x h100 meet p99 TTFT 2.00 s at 11.80 req/s; KV memory is what requests wait for; "
        "TTFT is 1.60 s of 2.00 s allowed.");
  CHECK(report_of(run, s).starts_with(answer_sentence(run, s) + '\n'));
  s.meets_objectives = false;
  run.objectives.tpot_us = 50'000;
  CHECK_THAT(answer_sentence(run, s),
             ContainsSubstring("2 x h100 miss p99 TTFT 2.00 s and p99 TPOT 50.0 ms"));
}

TEST_CASE("requests that were refused are part of the answer") {
  auto s = good_summary();
  s.requests.rejected = 3;
  CHECK_THAT(answer_sentence(two_h100(), s),
             ContainsSubstring("3 of 100 requests were refused or failed"));
}

TEST_CASE("an unstable run shows no latencies and says why") {
  auto s = good_summary();
  s.stable = false;
  s.instability = "the queue grew from 10 requests in the middle to 900 at the last arrival";
  const std::string text = report_of(two_h100(), s);
  CHECK_THAT(text, ContainsSubstring("2 x h100 are overloaded at this rate: the queue grew"));
  CHECK_THAT(text, ContainsSubstring("Latencies are not shown"));
  for (const auto* absent : {"TTFT ", "TPOT", "ITL", "E2E", "1.60 s", "2.50 s"}) {
    CHECK_THAT(text, !ContainsSubstring(absent));
  }
}

TEST_CASE("a run without one completed request says so") {
  CHECK(answer_sentence(two_h100(), {}) == "2 x h100: not one request completed.");
  CHECK(answer_sentence(run_with(1), {}) == "1 replica: not one request completed.");
}

TEST_CASE("the report names the price's source, the memory's arithmetic and every note") {
  auto run = two_h100();
  run.memory_arithmetic = "80 GB x 0.9 - 16 GB";
  run.notes = {"first note", "second note"};
  auto s = good_summary();
  s.decision_log_hash = "00ff";
  const std::string text = report_of(run, s);
  for (const auto* part : {"flat", "80 GB x 0.9 - 16 GB", "first note", "second note", "00ff"}) {
    CHECK_THAT(text, ContainsSubstring(part));
  }
}
