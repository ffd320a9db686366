// The Chrome trace of records made by hand: valid JSON, the right times, and
// every request's spans well nested.
#include "traces/chrome_trace.hpp"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::traces;
using nlohmann::json;

namespace {

input_record submit(std::uint64_t id, int at) {
  return {input_kind::submit, micros{at}, request_id{id}, token_count{8}, token_count{4}, {}};
}
input_record result(std::uint64_t step, int at) {
  return {input_kind::result, micros{at}, {}, {}, {}, step_id{step}};
}
sequence_name who(std::uint64_t id) {
  return {request_id{id}, 0};
}
ran_record ran(std::uint64_t id, int tokens, bool decode, int padding = 0) {
  return {who(id), token_count{tokens}, token_count{padding}, decode};
}

decision_record record_at(std::uint64_t step, int now) {
  decision_record record;
  record.step = step_id{step};
  record.now = micros{now};
  record.budget = token_count{100};
  return record;
}

struct events {
  std::vector<json> all;

  [[nodiscard]] std::vector<json> of(const std::string& phase) const {
    std::vector<json> found;
    for (const json& e : all) {
      if (e.at("ph") == phase) found.push_back(e);
    }
    return found;
  }
  /// A request's spans as "name from to", in order of their end in the file.
  [[nodiscard]] std::vector<std::string> spans_of(const std::string& id) const {
    std::vector<std::string> out;
    std::vector<json> open;
    for (const json& e : all) {
      if (e.value("id", "") != id) continue;
      if (e.at("ph") == "b") open.push_back(e);
      if (e.at("ph") != "e") continue;
      REQUIRE_FALSE(open.empty());
      REQUIRE(open.back().at("name") == e.at("name"));
      out.push_back(e.at("name").get<std::string>() + " " + open.back().at("ts").dump() + " " +
                    e.at("ts").dump());
      open.pop_back();
    }
    CHECK(open.empty());
    return out;
  }
};

events parsed(const std::string& text) {
  const json whole = json::parse(text);
  return {whole.at("traceEvents").get<std::vector<json>>()};
}

/// Request 7 prefills in two chunks and decodes twice; 8 is preempted for it and
/// comes back; 9 is refused.
events story() {
  std::ostringstream out;
  chrome_trace_writer writer{out, [](std::uint64_t id) { return id == 7 ? "a \"b\"\xff" : "8"; }};
  decision_observer& replica = writer.replica(3);

  decision_record first = record_at(1, 100);
  first.inputs = {submit(7, 90), submit(8, 100), submit(9, 100)};
  first.finished = {{who(9), reason::rejected_too_long, 50, 40}};
  first.admitted = {{who(7), reason::prefix_hit, token_count{4}}, {who(8), reason::admitted, {}}};
  first.ran = {ran(7, 2, false, 1), ran(8, 8, false)};
  first.held = {{who(7), reason::chunked_to_budget, 2, 2}};
  first.free = block_count{6};
  first.used = block_count{4};
  replica.on_record(first);

  decision_record second = record_at(2, 200);
  second.inputs = {result(1, 200)};
  second.preempted = {{who(8), who(7)}};
  second.ran = {ran(7, 2, false)};
  second.held = {{who(8), reason::no_free_blocks, 3, 1}};
  replica.on_record(second);

  decision_record third = record_at(3, 300);
  third.inputs = {result(2, 300)};
  third.admitted = {{who(8), reason::resumed, token_count{0}}};
  third.ran = {ran(7, 1, true), ran(8, 9, false)};
  replica.on_record(third);

  decision_record fourth = record_at(4, 400);
  fourth.inputs = {result(3, 400)};
  fourth.ran = {ran(7, 1, true), ran(8, 1, true)};
  replica.on_record(fourth);

  decision_record last = record_at(5, 500);
  last.inputs = {result(4, 500)};
  last.finished = {{who(7), reason::finished_eos, 0, 0}, {who(8), reason::finished_length, 0, 0}};
  replica.on_record(last);
  writer.finish();
  return parsed(out.str());
}

}  // namespace

TEST_CASE("steps stand where they ran, with what they computed and why") {
  const std::vector<json> steps = story().of("X");
  REQUIRE(steps.size() == 4);
  CHECK(steps[0].at("name") == "step 1");
  CHECK(steps[0].at("pid") == 3);
  CHECK(steps[0].at("ts") == 100);
  CHECK(steps[0].at("dur") == 100);
  const json& args = steps[0].at("args");
  CHECK(args.at("prefill_tokens") == 10);
  CHECK(args.at("decode_tokens") == 0);
  CHECK(args.at("padding_tokens") == 1);
  CHECK(args.at("admitted").at(0).at("reason") == "prefix_hit");
  CHECK(args.at("admitted").at(0).at("why") ==
        "Admitted with 4 tokens already in the prefix cache.");
  CHECK(args.at("cut").at(0).at("request") == 7);
  CHECK_FALSE(args.contains("waiting"));
  const json& second = steps[1].at("args");
  CHECK(second.at("waiting").at(0).at("why") == "Waits: it needs 3 KV blocks and 1 are free.");
  CHECK(second.at("preempted").at(0).at("request") == 8);
}

TEST_CASE("a request's queue, prefill and decode nest in its own span") {
  const events e = story();
  CHECK(e.spans_of("7") == std::vector<std::string>{"queued 90 100", "prefill 100 200",
                                                    "prefill 200 300", "decode 300 500",
                                                    "request 7 a \"b\"\xef\xbf\xbd 90 500"});
  CHECK(e.spans_of("8") == std::vector<std::string>{"queued 100 100", "prefill 100 200",
                                                    "queued after preemption 200 300",
                                                    "prefill 300 400", "decode 400 500",
                                                    "request 8 100 500"});
  CHECK(e.spans_of("9").empty());
}

TEST_CASE("preemptions and rejections are instants with their reason") {
  const std::vector<json> marks = story().of("i");
  REQUIRE(marks.size() == 2);
  CHECK(marks[0].at("ts") == 100);
  CHECK(marks[0].at("args").at("why") ==
        "Rejected: prompt and output come to 50 tokens; the most allowed (max-model-len) is 40.");
  CHECK(marks[1].at("ts") == 200);
  CHECK(marks[1].at("args").at("why") == "Preempted: its blocks were needed for request 7.");
}

TEST_CASE("counters follow memory and requests, written where they change") {
  std::map<std::string, std::vector<json>> counters;
  for (const json& e : story().of("C")) counters[e.at("name")].push_back(e);
  const auto& requests = counters.at("requests");
  REQUIRE(requests.size() == 4);
  CHECK(requests[0].at("args") == json{{"running", 2}, {"waiting", 0}});
  CHECK(requests[1].at("args") == json{{"running", 1}, {"waiting", 1}});
  CHECK(requests[2].at("args") == json{{"running", 2}, {"waiting", 0}});
  CHECK(requests[3].at("args") == json{{"running", 0}, {"waiting", 0}});
  CHECK(requests[3].at("ts") == 500);
  CHECK(counters.at("KV blocks")[0].at("args") == json{{"used", 4}, {"free", 6}});
  CHECK(counters.at("tokens of the step").size() == 4);
}

TEST_CASE("run ahead: a step begins when the one before it ends") {
  std::ostringstream out;
  chrome_trace_writer writer{out};
  decision_observer& replica = writer.replica(0);
  decision_record first = record_at(1, 10);
  first.inputs = {submit(1, 10)};
  first.admitted = {{who(1), reason::admitted, {}}};
  first.ran = {ran(1, 8, false)};
  replica.on_record(first);
  decision_record ahead = record_at(2, 10);
  ahead.ran = {ran(1, 1, true)};
  replica.on_record(ahead);
  decision_record again = record_at(3, 110);
  again.inputs = {result(1, 110)};
  again.ran = {ran(1, 1, true)};
  replica.on_record(again);
  // Preempted while step 3 is in flight: the queue begins when that has ended.
  decision_record fourth = record_at(4, 150);
  fourth.inputs = {result(2, 150)};
  fourth.preempted = {{who(1), who(1)}};
  replica.on_record(fourth);
  decision_record fifth = record_at(4, 190);
  fifth.inputs = {result(3, 190)};
  fifth.admitted = {{who(1), reason::resumed, {}}};
  fifth.ran = {ran(1, 10, false)};
  replica.on_record(fifth);
  writer.finish();
  const events e = parsed(out.str());
  const std::vector<json> steps = e.of("X");
  REQUIRE(steps.size() == 3);
  CHECK(steps[1].at("ts") == 110);
  CHECK(steps[1].at("dur") == 40);
  // What is open at the end of the recording is closed there.
  CHECK(e.spans_of("1") ==
        std::vector<std::string>{"queued 10 10", "prefill 10 110", "decode 110 190",
                                 "queued after preemption 190 190", "request 1 10 190"});
}

TEST_CASE("an empty trace and an unfinished one are valid JSON") {
  std::ostringstream out;
  { const chrome_trace_writer writer{out}; }
  CHECK(parsed(out.str()).all.empty());
}

TEST_CASE("a stream that does not take the trace is an error") {
  std::ofstream full("/dev/full");
  if (!full) return;
  chrome_trace_writer writer{full};
  (void)writer.replica(0);
  CHECK_THROWS_AS(writer.finish(), input_error);
}
