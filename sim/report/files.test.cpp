// The report's files: keys by name and order, rows by hand.
#include "sim/report/files.hpp"

#include <sstream>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/report_fixture.hpp"
#include "traces/temp_file.hpp"

using namespace octavo;
using nlohmann::ordered_json;
using test::completed_request;
using test::failed_request;
using test::run_with;

namespace {

using names = std::vector<std::string>;

names keys_of(const ordered_json& object) {
  names keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

ordered_json report_of(const sim::prepared_run& run, const sim::run_summary& summary) {
  return sim::to_json(run, summary, 1.25);
}

std::string csv_of(const sim::prepared_run& run, std::vector<sim::request_outcome> requests) {
  sim::simulation_outcome o;
  o.requests = std::move(requests);
  std::ostringstream out;
  write_requests_csv(run, o, out);
  return out.str();
}

constexpr auto header =
    "id,arrival_s,prompt_tokens,output_tokens,cached_tokens,queue_s,ttft_s,tpot_s,e2e_s,"
    "preemptions,replica,finish\n";

}  // namespace

TEST_CASE("the JSON report has its keys, in their order") {
  const auto report = report_of(run_with(1), {});
  CHECK(keys_of(report) == names{"config", "cost_source", "stable", "requests", "ttft_s", "tpot_s",
                                 "itl_s", "e2e_s", "throughput", "goodput_rps", "kv", "prefix",
                                 "preemptions", "steps", "usd_per_million_output_tokens",
                                 "meets_slo", "wall_s", "decision_log_hash"});
  CHECK(keys_of(report["requests"]) ==
        names{"submitted", "completed", "rejected", "cancelled", "failed"});
  for (const auto* times : {"ttft_s", "tpot_s", "itl_s", "e2e_s"}) {
    CHECK(keys_of(report[times]) == names{"mean", "p50", "p90", "p95", "p99", "max"});
  }
  CHECK(keys_of(report["throughput"]) == names{"requests_per_s", "output_tokens_per_s"});
  CHECK(keys_of(report["kv"]) ==
        names{"blocks_total", "used_mean", "used_max", "tokens_per_slot_mean"});
  CHECK(keys_of(report["prefix"]) == names{"query_tokens", "hit_tokens"});
}

TEST_CASE("the JSON report's values stand where their names say") {
  sim::run_summary s;
  s.requests = {.submitted = 5, .completed = 4, .rejected = 1, .cancelled = 2, .failed = 3};
  s.ttft_s = {1, 2, 3, 4, 5, 6};
  s.requests_per_s = 7;
  s.output_tokens_per_s = 8;
  s.goodput_rps = 9;
  s.blocks_total = 10;
  s.kv_used_mean = 0.11;
  s.kv_used_max = 0.12;
  s.tokens_per_slot = 0.13;
  s.query_tokens = 14;
  s.hit_tokens = 15;
  s.preemptions = 16;
  s.steps = 17;
  s.stable = false;
  auto run = run_with(1);
  run.seed = 18;
  const auto report = report_of(run, s);
  CHECK(report["requests"] ==
        ordered_json{
            {"submitted", 5}, {"completed", 4}, {"rejected", 1}, {"cancelled", 2}, {"failed", 3}});
  CHECK(report["ttft_s"] ==
        ordered_json{
            {"mean", 1.0}, {"p50", 2.0}, {"p90", 3.0}, {"p95", 4.0}, {"p99", 5.0}, {"max", 6.0}});
  CHECK(report["throughput"] ==
        ordered_json{{"requests_per_s", 7.0}, {"output_tokens_per_s", 8.0}});
  CHECK(report["goodput_rps"] == 9);
  CHECK(report["kv"] == ordered_json{{"blocks_total", 10},
                                     {"used_mean", 0.11},
                                     {"used_max", 0.12},
                                     {"tokens_per_slot_mean", 0.13}});
  CHECK(report["prefix"] == ordered_json{{"query_tokens", 14}, {"hit_tokens", 15}});
  CHECK(report["preemptions"] == 16);
  CHECK(report["steps"] == 17);
  CHECK(report["stable"] == false);
  CHECK(report["wall_s"] == 1.25);
  CHECK(report["config"]["seed"] == 18);
  CHECK(report["config"]["num_blocks"] == 1000);
  CHECK(report["cost_source"] == "flat");
}

TEST_CASE("the decision log's hash is a text, or null where none was kept") {
  sim::run_summary s;
  CHECK(report_of(run_with(1), s)["decision_log_hash"].is_null());
  s.decision_log_hash = "0123";
  CHECK(report_of(run_with(1), s)["decision_log_hash"] == "0123");
}

TEST_CASE("the CSV has one row a request, with nothing where a time does not exist") {
  auto run = run_with(3);
  auto first = completed_request(0.5, 1, 3, 5);
  first.admitted = test::seconds_us(0.75);
  first.cached_tokens = token_count{64};
  first.preemptions = 2;
  first.replica = 3;
  CHECK(
      csv_of(run, {first, failed_request(1, reason::rejected_too_long), sim::request_outcome{}}) ==
      std::string{header} +
          "0,0.500000,100,5,64,0.250000,0.500000,0.500000000,2.500000,2,3,finished{eos}\n"
          "1,1.000000,100,0,0,,,,,0,0,rejected{too_long}\n"
          "2,,0,0,0,,,,,0,0,none\n");
}

TEST_CASE("the CSV leaves out warm-up requests and quotes names that need it") {
  auto run = run_with(2);
  run.simulation.work.warmup = 1;
  auto trace = std::make_shared<traces::trace>(*run.simulation.trace);
  trace->ids = {"a", "say \"hi\", twice"};
  run.simulation.trace = trace;
  CHECK(csv_of(run, {completed_request(0, 1, 1, 1), completed_request(1, 2, 2, 1)}) ==
        std::string{header} +
            "\"say \"\"hi\"\", twice\",1.000000,100,1,0,0.000000,1.000000,,1.000000,0,0,"
            "finished{eos}\n");
}

TEST_CASE("a file that cannot be written is an error that names it") {
  CHECK_THROWS_WITH(sim::write_file("/no/such/folder/report.json", [](std::ostream&) {}),
                    Catch::Matchers::ContainsSubstring("/no/such/folder/report.json"));
  const traces::temp_file file;
  sim::write_file(file.path().string(), [](std::ostream& out) { out << "whole\n"; });
  CHECK(traces::contents_of(file.path()) == "whole\n");
}
