// Answers against the shapes that OpenAI publishes, written out by hand.
#include "web/gateway/api/shapes.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "web/gateway/api/sse.hpp"

using namespace octavo;
using namespace octavo::api;
using nlohmann::json;

namespace {

const answer_identity identity{"chatcmpl-1", 17, "m"};
const token_usage usage{9, 12, 4};

/// A chunk with these members after the model.
json chat_chunk(const std::string& members) {
  return json::parse(
      R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":17,"model":"m",)" + members +
      "}");
}

json text_chunk(const std::string& members) {
  return json::parse(R"({"id":"cmpl-1","object":"text_completion","created":17,"model":"m",)" +
                     members + "}");
}

token_info token(token_id id, std::string bytes, float logprob, std::vector<alternative> top = {}) {
  return {id, std::move(bytes), logprob, std::move(top), true};
}

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("the chunks of a chat are those of the specification") {
  const chat_stream chunks{identity, {}};
  CHECK(json::parse(chunks.role(0)) ==
        chat_chunk(R"("choices":[{"index":0,"delta":{"role":"assistant","content":""},
                       "logprobs":null,"finish_reason":null}])"));
  CHECK(json::parse(chunks.content(1, "He\n\"", {})) ==
        chat_chunk(R"("choices":[{"index":1,"delta":{"content":"He\n\""},"logprobs":null,
                       "finish_reason":null}])"));
  CHECK(json::parse(chunks.finish(0, {"stop", {}})) ==
        chat_chunk(R"("choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop",
                       "stop_reason":null}])"));
  CHECK(json::parse(chunks.finish(0, {"stop", std::string{"END"}}))["choices"][0]["stop_reason"] ==
        "END");
  CHECK(json::parse(chunks.finish(0, {"stop", token_id{7}}))["choices"][0]["stop_reason"] == 7);
}

TEST_CASE("usage stands in every chunk or in none") {
  const chat_stream without{identity, {}};
  const chat_stream with{identity, {.include_usage = true}};
  const std::string figures = R"({"prompt_tokens":9,"completion_tokens":12,"total_tokens":21,
                                  "prompt_tokens_details":{"cached_tokens":4}})";
  CHECK_FALSE(json::parse(without.content(0, "x", {})).contains("usage"));
  CHECK(json::parse(with.role(0)).at("usage").is_null());
  CHECK(json::parse(with.content(0, "x", {})).at("usage").is_null());
  CHECK(json::parse(with.finish(0, {})).at("usage").is_null());
  CHECK(json::parse(with.content(0, "x", {}, &usage)).at("usage") == json::parse(figures));
  CHECK(json::parse(with.usage(usage)) == chat_chunk(R"("choices":[],"usage":)" + figures));
}

TEST_CASE("log-probabilities carry the bytes of every token") {
  const chat_stream chunks{identity, {.logprobs = true}};
  const token_info given[] = {token(5, "He", -0.25F, {{5, "He", -0.25F}, {6, "A", -2.5F}})};
  CHECK(json::parse(chunks.content(0, "He", given))["choices"][0]["logprobs"] ==
        json::parse(R"({"content":[{"token":"He","logprob":-0.25,"bytes":[72,101],"top_logprobs":[
          {"token":"He","logprob":-0.25,"bytes":[72,101]},
          {"token":"A","logprob":-2.5,"bytes":[65]}]}]})"));
}

TEST_CASE("a token that is part of a code point reads as something, and its bytes are true") {
  const chat_stream chunks{identity, {.logprobs = true}};
  const token_info given[] = {token(1, "\xF0\x9F", -1), token(2, "\x98\x80", -1)};
  const json shown = json::parse(chunks.content(0, "\xF0\x9F\x98\x80", given));
  const json& content = shown["choices"][0]["logprobs"]["content"];
  CHECK(content[0]["token"] == "\uFFFD");
  CHECK(content[0]["bytes"] == json::array({0xF0, 0x9F}));
  CHECK(content[1]["token"] == "\uFFFD\uFFFD");
  CHECK(content[1]["bytes"] == json::array({0x98, 0x80}));
  CHECK(shown["choices"][0]["delta"]["content"] == "\xF0\x9F\x98\x80");
}

TEST_CASE("logarithms of nothing are numbers that JSON knows") {
  const chat_stream chunks{identity, {.logprobs = true}};
  const token_info given[] = {token(1, "a", minus_infinity, {{1, "a", std::nanf("")}})};
  const json content =
      json::parse(chunks.content(0, "a", given))["choices"][0]["logprobs"]["content"];
  CHECK(content[0]["logprob"] == -9999.0);
  CHECK(content[0]["top_logprobs"][0]["logprob"] == -9999.0);
}

TEST_CASE("bytes that are no text never break an answer") {
  const chat_stream chunks{identity, {.logprobs = true}};
  const token_info given[] = {token(1, "\xFF", -1)};
  CHECK(json::parse(chunks.content(0, "a\xC3", given))["choices"][0]["delta"]["content"] ==
        "a\uFFFD");
  const answered_choice choices[] = {{0, "\xE2\x82", {}, {"length", std::string{"\xFF"}}}};
  CHECK(json::parse(chat_completion(identity, choices, usage,
                                    false))["choices"][0]["message"]["content"] == "\uFFFD");
  CHECK_NOTHROW(json::parse(detokenize_answer("\xFF")));
}

TEST_CASE("a whole chat completion has a message and its usage") {
  const answered_choice choices[] = {{0, "Hi", {}, {"stop", {}}}, {1, "Ho", {}, {"length", {}}}};
  CHECK(json::parse(chat_completion(identity, choices, usage, false)) == json::parse(R"({
      "id":"chatcmpl-1","object":"chat.completion","created":17,"model":"m","choices":[
        {"index":0,"message":{"role":"assistant","content":"Hi","refusal":null},"logprobs":null,
         "finish_reason":"stop","stop_reason":null},
        {"index":1,"message":{"role":"assistant","content":"Ho","refusal":null},"logprobs":null,
         "finish_reason":"length","stop_reason":null}],
      "usage":{"prompt_tokens":9,"completion_tokens":12,"total_tokens":21,
               "prompt_tokens_details":{"cached_tokens":4}}})"));
}

TEST_CASE("the chunks of a completion are those of the specification") {
  completion_stream chunks{{"cmpl-1", 17, "m"}, {.include_usage = true}};
  CHECK(json::parse(chunks.content(3, "He", {})) ==
        text_chunk(R"("choices":[{"index":3,"text":"He","logprobs":null,"finish_reason":null,
                       "stop_reason":null}],"usage":null)"));
  CHECK(json::parse(chunks.finish(3, {"length", {}})) ==
        text_chunk(R"("choices":[{"index":3,"text":"","logprobs":null,"finish_reason":"length",
                       "stop_reason":null}],"usage":null)"));
  CHECK(json::parse(chunks.usage({1, 2, 0})) ==
        text_chunk(R"("choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,
                      "total_tokens":3,"prompt_tokens_details":{"cached_tokens":0}})"));
}

TEST_CASE("a completion's log-probabilities count code points over chunks of one index") {
  completion_stream chunks{{"cmpl-1", 17, "m"}, {.logprobs = true}};
  const auto logprobs = [](const std::string& chunk) {
    return json::parse(chunk)["choices"][0]["logprobs"];
  };
  const token_info first[] = {token(1, "é", -0.5F, {{1, "é", -0.5F}, {2, "e", -1.5F}})};
  CHECK(logprobs(chunks.content(0, "é", first)) == json::parse(R"({"tokens":["é"],
      "token_logprobs":[-0.5],"top_logprobs":[{"é":-0.5,"e":-1.5}],"text_offset":[0]})"));
  const token_info parts[] = {token(3, "\xF0\x9F", -1), token(4, "\x98\x80", -1),
                              token(5, "b", -1)};
  const json second = logprobs(chunks.content(0,
                                              "\xF0\x9F\x98\x80"
                                              "b",
                                              parts));
  CHECK(second["text_offset"] == json::array({1, 1, 2}));
  CHECK(second["tokens"] == json::array({"bytes:\\xf0\\x9f", "bytes:\\x98\\x80", "b"}));
  CHECK(logprobs(chunks.content(2, "é", first))["text_offset"] == json::array({0}));
}

TEST_CASE("an echo's first token has no log-probability") {
  answered_choice choice{0, "ab", {}, {"length", {}}};
  choice.tokens = {{1, "a", std::nullopt, {}, true},
                   {2, "b", -0.5F, {{3, "c", -0.25F}}, true},
                   {4, "</s>", -1.0F, {}, false}};
  const answered_choice choices[] = {choice};
  const json shown = json::parse(text_completion({"cmpl-1", 17, "m"}, choices, {2, 0, 0}, true));
  CHECK(shown == text_chunk(R"("choices":[{"index":0,"text":"ab","logprobs":{
      "tokens":["a","b","</s>"],"token_logprobs":[null,-0.5,-1.0],
      "top_logprobs":[null,{"c":-0.25,"b":-0.5},{"</s>":-1.0}],"text_offset":[0,1,2]},
      "finish_reason":"length","stop_reason":null}],"usage":{"prompt_tokens":2,
      "completion_tokens":0,"total_tokens":2,"prompt_tokens_details":{"cached_tokens":0}})"));
}

TEST_CASE("small endpoints answer as vLLM's do") {
  const std::vector<std::string> names{"m"};
  CHECK(json::parse(models_list(names, 17, token_count{64})) == json::parse(R"({"object":"list",
      "data":[{"id":"m","object":"model","created":17,"owned_by":"octavo","root":"m",
               "parent":null,"max_model_len":64}]})"));
  CHECK(json::parse(model_card("m", 17, token_count{64}))["id"] == "m");
  const std::vector<token_id> tokens{1, 2};
  const std::vector<std::string> texts{"a", "\xF0"};
  CHECK(json::parse(tokenize_answer(tokens, token_count{64}, nullptr)) ==
        json::parse(R"({"count":2,"max_model_len":64,"tokens":[1,2],"token_strs":null})"));
  CHECK(json::parse(tokenize_answer(tokens, token_count{64}, &texts))["token_strs"] ==
        json::array({"a", "\uFFFD"}));
  CHECK(json::parse(detokenize_answer("ab")) == json::parse(R"({"prompt":"ab"})"));
  CHECK(json::parse(version_answer("0.1")) == json::parse(R"({"version":"0.1"})"));
}

TEST_CASE("events are lines that end with an empty one") {
  CHECK(sse_event("{}") == "data: {}\n\n");
  CHECK(sse_event("{}", "error") == "event: error\ndata: {}\n\n");
  CHECK(sse_done == "data: [DONE]\n\n");
  CHECK(sse_heartbeat == ": ping\n\n");
}

TEST_CASE("no text can break out of its line") {
  const chat_stream chunks{{"a\nb", 1, "m\r\n\n"}, {}};
  const std::string chunk = chunks.content(0, "x\n\ndata: [DONE]\r", {});
  CHECK(chunk.find_first_of("\r\n") == std::string::npos);
}
