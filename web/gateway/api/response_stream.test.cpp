// The events of a response against OpenAI's Responses API, written out by hand.
#include "web/gateway/api/response_stream.hpp"

#include "tests/support/catch.hpp"
#include "web/gateway/api/parse.hpp"
#include "web/gateway/api/test_bounds.hpp"

using namespace octavo;
using namespace octavo::api;
using nlohmann::json;

namespace {

const answer_identity identity{"resp_1", 17, "tiny"};
const token_usage usage{9, 2, 4};
const answer_timings timings{1.5, 20, 45};

generation_request request(const std::string& more = "") {
  return parse_responses(std::string_view{R"({"input":"Hi","temperature":0.7)" + more + "}"},
                         test_bounds());
}

/// The response as it is after `status` and what comes with it.
json response_object(const std::string& status, const json& changes = json::object()) {
  json object = json::parse(R"({"id":"resp_1","object":"response","created_at":17,
      "background":false,"error":null,"incomplete_details":null,"instructions":null,
      "max_output_tokens":null,"model":"tiny","output":[],"parallel_tool_calls":true,
      "previous_response_id":null,"reasoning":{"effort":null,"summary":null},
      "service_tier":"default","store":false,"temperature":0.7,
      "text":{"format":{"type":"text"}},"tool_choice":"none","tools":[],"top_logprobs":0,
      "top_p":1.0,"truncation":"disabled","usage":null,"user":null,"metadata":{}})");
  object["status"] = status;
  object.update(changes);
  return object;
}

json message(const std::string& status, const std::string& text) {
  return json::parse(R"({"id":"msg_1","type":"message","status":")" + status +
                     R"(","role":"assistant","content":[{"type":"output_text","text":")" + text +
                     R"(","annotations":[],"logprobs":[]}]})");
}

json usage_figures() {
  return json::parse(R"({"input_tokens":9,
      "input_tokens_details":{"cached_tokens":4,"cache_write_tokens":0},"output_tokens":2,
      "output_tokens_details":{"reasoning_tokens":0},"total_tokens":11})");
}

std::vector<json> parsed(const std::vector<response_event>& events) {
  std::vector<json> list;
  for (const response_event& event : events) {
    list.push_back(json::parse(event.json));
    CHECK(list.back()["type"] == event.name);
  }
  return list;
}

}  // namespace

TEST_CASE("a response begins with four events") {
  response_stream events{identity, request()};
  const auto begin = parsed(events.begin());
  REQUIRE(begin.size() == 4);
  CHECK(begin[0] == json({{"type", "response.created"},
                          {"sequence_number", 0},
                          {"response", response_object("in_progress")}}));
  CHECK(begin[1] == json({{"type", "response.in_progress"},
                          {"sequence_number", 1},
                          {"response", response_object("in_progress")}}));
  CHECK(begin[2] == json::parse(R"({"type":"response.output_item.added","sequence_number":2,
      "output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress",
      "role":"assistant","content":[]}})"));
  CHECK(begin[3] == json::parse(R"({"type":"response.content_part.added","sequence_number":3,
      "item_id":"msg_1","output_index":0,"content_index":0,
      "part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}})"));
}

TEST_CASE("deltas are repeated whole at the end, with usage and timings") {
  response_stream events{identity, request()};
  (void)events.begin();
  const auto first = events.delta("He", {});
  CHECK(first.name == "response.output_text.delta");
  CHECK(json::parse(first.json) == json::parse(R"({"type":"response.output_text.delta",
      "item_id":"msg_1","output_index":0,"content_index":0,"delta":"He","logprobs":[],
      "sequence_number":4})"));
  (void)events.delta("y", {});
  const auto end = parsed(events.end({"stop", {}}, usage, timings));
  REQUIRE(end.size() == 4);
  CHECK(end[0] == json::parse(R"({"type":"response.output_text.done","sequence_number":6,
      "item_id":"msg_1","output_index":0,"content_index":0,"text":"Hey","logprobs":[]})"));
  CHECK(end[1] == json::parse(R"({"type":"response.content_part.done","sequence_number":7,
      "item_id":"msg_1","output_index":0,"content_index":0,
      "part":{"type":"output_text","text":"Hey","annotations":[],"logprobs":[]}})"));
  CHECK(end[2] == json({{"type", "response.output_item.done"},
                        {"sequence_number", 8},
                        {"output_index", 0},
                        {"item", message("completed", "Hey")}}));
  const json changes = {{"output", json::array({message("completed", "Hey")})},
                        {"usage", usage_figures()}};
  CHECK(end[3] == json({{"type", "response.completed"},
                        {"sequence_number", 9},
                        {"response", response_object("completed", changes)},
                        {"timings", json::parse(R"({"queue_ms":1.5,"ttft_ms":20.0,
                                                    "total_ms":45.0,"cached_tokens":4})")}}));
}

TEST_CASE("an answer that reached its limit, or was cancelled, is incomplete") {
  response_stream at_limit{identity, request(R"(,"max_output_tokens":2)")};
  const auto end = parsed(at_limit.end({"length", {}}, usage, timings));
  CHECK(end[3]["type"] == "response.incomplete");
  CHECK(end[3]["response"]["status"] == "incomplete");
  CHECK(end[3]["response"]["incomplete_details"] == json({{"reason", "max_output_tokens"}}));
  CHECK(end[3]["response"]["max_output_tokens"] == 2);
  CHECK(end[2]["item"]["status"] == "incomplete");
  response_stream cancelled{identity, request()};
  const auto cut = parsed(cancelled.end({"abort", {}}, usage, timings));
  CHECK(cut[3]["type"] == "response.incomplete");
  CHECK(cut[3]["response"]["status"] == "cancelled");
}

TEST_CASE("an engine that fails ends the response with its words") {
  response_stream events{identity, request()};
  (void)events.begin();
  (void)events.delta("He", {});
  const auto last = events.fail(server_error("the executor is gone"));
  CHECK(last.name == "response.failed");
  const json changes = {{"error", {{"code", "server_error"}, {"message", "the executor is gone"}}},
                        {"output", json::array({message("incomplete", "He")})}};
  CHECK(json::parse(last.json)["response"] == response_object("failed", changes));
}

TEST_CASE("a response that is not streamed is the same object") {
  response_stream events{identity,
                         request(R"(,"user":"u","instructions":"be","metadata":{"k":"v"})")};
  (void)events.delta("Hey", {});
  const json changes = {{"output", json::array({message("completed", "Hey")})},
                        {"usage", usage_figures()},
                        {"user", "u"},
                        {"instructions", "be"},
                        {"metadata", {{"k", "v"}}},
                        {"timings", json::parse(R"({"queue_ms":1.5,"ttft_ms":20.0,
                                                    "total_ms":45.0,"cached_tokens":4})")}};
  CHECK(json::parse(events.whole({"stop", {}}, usage, timings)) ==
        response_object("completed", changes));
}

TEST_CASE("log-probabilities come with each delta and once more with the whole") {
  response_stream events{
      identity, request(R"(,"include":["message.output_text.logprobs"],"top_logprobs":1)")};
  const token_info token{1, "\xF0\x9F", -0.5F, {{1, "\xF0\x9F", -0.5F}}, true};
  const token_info tokens[] = {token};
  const json entry = json::parse(R"([{"token":"�","logprob":-0.5,"bytes":[240,159],
      "top_logprobs":[{"token":"�","logprob":-0.5,"bytes":[240,159]}]}])");
  CHECK(json::parse(events.delta("", tokens).json)["logprobs"] == entry);
  const auto end = parsed(events.end({"stop", {}}, usage, timings));
  CHECK(end[0]["logprobs"] == entry);
  CHECK(end[3]["response"]["output"][0]["content"][0]["logprobs"] == entry);
  CHECK(end[3]["response"]["top_logprobs"] == 1);
}

TEST_CASE("events of a socket carry the client's own id") {
  response_stream events{identity, request(), "mine\""};
  CHECK(parsed(events.begin())[0]["id"] == "mine\"");
  CHECK(json::parse(events.delta("x", {}).json)["id"] == "mine\"");
  response_stream lane{identity, request(), "mine", "stream_id"};
  CHECK(json::parse(lane.delta("x", {}).json)["stream_id"] == "mine");
  CHECK(json::parse(error_event(invalid_request("input", "no"), "mine")) == json::parse(R"({
      "type":"error","id":"mine","status":400,"error":{"message":"no",
      "type":"invalid_request_error","param":"input","code":null}})"));
  CHECK_FALSE(json::parse(error_event(server_error("no"))).contains("id"));
}
