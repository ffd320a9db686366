// What bodies become, and what is refused, for every endpoint alike.
#include "web/gateway/api/parse.hpp"

#include <limits>

#include "tests/support/catch.hpp"
#include "web/gateway/api/test_bounds.hpp"

using namespace octavo;
using namespace octavo::api;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

/// A chat request with more fields.
std::string chat_with(const std::string& fields) {
  return R"({"messages":[{"role":"user","content":"Hi"}])" + (fields.empty() ? "" : "," + fields) +
         "}";
}

generation_request chat(const std::string& fields) {
  return parse_chat(chat_with(fields), test_bounds());
}

/// A field that is refused with status 400, by name.
void refused(const std::string& fields, const std::string& param, const std::string& message = "") {
  INFO(fields);
  const auto problem = error_of([&] { (void)chat(fields); });
  CHECK(problem.status == 400);
  CHECK(problem.type == "invalid_request_error");
  CHECK(problem.param == param);
  CHECK_THAT(problem.message, ContainsSubstring(message));
}

void malformed(const std::string& body, const std::string& message) {
  INFO(body.substr(0, 60));
  const auto problem = error_of([&] { (void)parse_chat(body, test_bounds()); });
  CHECK(problem.status == 400);
  CHECK_THAT(problem.message, ContainsSubstring(message));
}

}  // namespace

TEST_CASE("an error is the object that OpenAI's clients read") {
  const api_error problem{400, "invalid_request_error", "no", "max_tokens", ""};
  CHECK(json::parse(problem.to_json()) == json::parse(R"({"error":{"message":"no",
        "type":"invalid_request_error","param":"max_tokens","code":null}})"));
  CHECK(json::parse(unauthenticated("who?").to_json())["error"]["param"].is_null());
  CHECK_NOTHROW(json::parse(invalid_request("\xFF", "\xC3(").to_json()));
}

TEST_CASE("bodies that are no JSON object are refused, however they are broken") {
  malformed("", "not valid JSON");
  malformed("{", "not valid JSON");
  malformed(R"({"messages":[],})", "not valid JSON");
  malformed(chat_with(R"("temperature":NaN)"), "not valid JSON");
  malformed(chat_with(R"("temperature":1e999)"), "not valid JSON");
  malformed(chat_with(R"("n":1,"n":2)"), "\"n\" occurs twice");
  malformed(R"([1])", "a JSON object is expected");
  malformed("{\"user\":\"\xC4\xE3\xBA\xC3\"}", "not valid JSON");
  malformed(R"({"user":"\ud83d"})", "not valid JSON");
  malformed(std::string(1'000'000, '['), "nested deeper than 32");
  malformed(R"({"messages":)" + std::string(3'000, '['), "nested deeper than 32");
}

TEST_CASE("a request that says little gets the defaults") {
  limits bounds = test_bounds();
  bounds.default_sampling.temperature = 0.6F;
  bounds.default_sampling.top_k = 20;
  const auto request = parse_chat(chat_with(""), bounds);
  CHECK(request.endpoint == endpoint_kind::chat);
  CHECK(request.model == "tiny");
  CHECK(request.sampling.temperature == 0.6F);
  CHECK(request.sampling.top_k == 20);
  CHECK(request.sampling.logprobs == -1);
  CHECK(request.n == 1);
  CHECK_FALSE(request.max_tokens.has_value());
  CHECK_FALSE(request.stream);
}

TEST_CASE("what a model's makers recommend is the default sampling") {
  model::generation_config config;
  config.temperature = 0.7;
  config.top_p = 0.8;
  config.top_k = 20;
  config.repetition_penalty = 1.05;
  const auto sampling = default_sampling(config);
  CHECK(sampling.temperature == 0.7F);
  CHECK(sampling.top_p == 0.8F);
  CHECK(sampling.top_k == 20);
  CHECK(sampling.repetition_penalty == 1.05F);
  CHECK(default_sampling({}).temperature == 1);
}

TEST_CASE("every sampling field is read") {
  const auto request = chat(R"("model":"tiny-too","temperature":0.5,"top_p":0.9,"top_k":5,
      "min_p":0.1,"presence_penalty":-2,"frequency_penalty":2,"repetition_penalty":1.1,
      "seed":-9223372036854775808,"n":3,"max_tokens":16.0,"min_tokens":2,"ignore_eos":true,
      "stop":["a","b"],"stop_token_ids":[1,2],"include_stop_str_in_output":true,
      "skip_special_tokens":false,"logit_bias":{"7":-100,"3":1.5},"allowed_token_ids":[1,45],
      "bad_words":["no"],"logprobs":true,"top_logprobs":4,"cache_salt":"s","user":"u",
      "metadata":{"a":"b"},"stream":true,
      "stream_options":{"include_usage":true,"continuous_usage_stats":true})");
  const sampling_parameters& s = request.sampling;
  CHECK(request.model == "tiny-too");
  CHECK(s.temperature == 0.5F);
  CHECK(s.top_p == 0.9F);
  CHECK(s.top_k == 5);
  CHECK(s.min_p == 0.1F);
  CHECK(s.presence_penalty == -2);
  CHECK(s.frequency_penalty == 2);
  CHECK(s.repetition_penalty == 1.1F);
  CHECK(s.seed == std::numeric_limits<std::int64_t>::min());
  CHECK(request.n == 3);
  CHECK(request.max_tokens == 16);
  CHECK(s.min_tokens == 2);
  CHECK(s.ignore_eos);
  CHECK(s.stop == std::vector<std::string>{"a", "b"});
  CHECK(s.stop_token_ids == std::vector<token_id>{1, 2});
  CHECK(s.include_stop_str_in_output);
  CHECK_FALSE(s.skip_special_tokens);
  CHECK(s.logit_bias == std::vector<std::pair<token_id, float>>{{3, 1.5F}, {7, -100}});
  CHECK(s.allowed_token_ids == std::vector<token_id>{1, 45});
  CHECK(request.bad_words == std::vector<std::string>{"no"});
  CHECK(s.logprobs == 4);
  CHECK(request.cache_salt == "s");
  CHECK(request.user == "u");
  CHECK((request.stream && request.include_usage && request.continuous_usage));
}

TEST_CASE("temperatures near zero are greedy or lifted, as with vLLM") {
  CHECK(chat(R"("temperature":0)").sampling.temperature == 0);
  CHECK(chat(R"("temperature":0.000001)").sampling.temperature < 1e-5F);
  CHECK(chat(R"("temperature":0.001)").sampling.temperature == 0.01F);
}

TEST_CASE("numbers outside their range are refused by name") {
  refused(R"("temperature":2.1)", "temperature", "temperature is 2.1; a number from 0 to 2");
  refused(R"("temperature":-0.1)", "temperature");
  refused(R"("temperature":"hot")", "temperature", "\"hot\"");
  refused(R"("top_p":0)", "top_p", "above 0");
  refused(R"("top_p":1.01)", "top_p");
  refused(R"("top_k":-2)", "top_k");
  refused(R"("top_k":1.5)", "top_k");
  refused(R"("min_p":-0.1)", "min_p");
  refused(R"("presence_penalty":2.5)", "presence_penalty");
  refused(R"("frequency_penalty":-3)", "frequency_penalty");
  refused(R"("repetition_penalty":0)", "repetition_penalty");
  refused(R"("repetition_penalty":1e-300)", "repetition_penalty");
  refused(R"("seed":9223372036854775808)", "seed");
  refused(R"("seed":0.5)", "seed");
  refused(R"("n":0)", "n");
  refused(R"("n":1000000000)", "n", "from 1 to 8");
  refused(R"("max_tokens":0)", "max_tokens");
  refused(R"("max_tokens":1e30)", "max_tokens");
  refused(R"("min_tokens":-1)", "min_tokens");
  refused(R"("max_tokens":3,"min_tokens":4)", "min_tokens");
  refused(R"("logprobs":true,"top_logprobs":21)", "top_logprobs", "from 0 to 20");
  refused(R"("logprobs":true,"top_logprobs":-1)", "top_logprobs");
  refused(R"("top_logprobs":3)", "top_logprobs", "logprobs is true");
  refused(R"("logprobs":3)", "logprobs", "true or false");
  refused(R"("stream":1)", "stream");
}

TEST_CASE("stops, biases and lists of tokens have bounds") {
  refused(R"("stop":"")", "stop");
  refused(R"("stop":["a",""])", "stop");
  refused(R"("stop":[1])", "stop");
  refused(R"("stop":["1","2","3","4","5","6","7","8","9","a","b","c","d","e","f","g","h"])", "stop",
          "at most 16");
  refused(R"("stop":")" + std::string(1025, 'x') + "\"", "stop");
  refused(R"("stop_token_ids":[46])", "stop_token_ids[0]", "from 0 to 45");
  refused(R"("stop_token_ids":[1,-1])", "stop_token_ids[1]");
  refused(R"("allowed_token_ids":[])", "allowed_token_ids");
  refused(R"("bad_words":[""])", "bad_words");
  refused(R"("logit_bias":{"46":1})", "logit_bias", "from 0 to 45");
  refused(R"("logit_bias":{"x":1})", "logit_bias");
  refused(R"("logit_bias":{"-1":1})", "logit_bias");
  refused(R"("logit_bias":{"1":101})", "logit_bias", "-100 to 100");
  refused(R"("logit_bias":{"1":null})", "logit_bias");
  refused(R"("logit_bias":{"1":1,"01":2})", "logit_bias", "twice");
  refused(R"("cache_salt":"")", "cache_salt");
  refused(R"("metadata":{"a":1})", "metadata");
}

TEST_CASE("what is not supported is named, and what asks for nothing is taken") {
  refused(R"("tools":[{"type":"function","function":{"name":"f"}}])", "tools", "not supported");
  refused(R"("tool_choice":"auto")", "tool_choice");
  refused(R"("response_format":{"type":"json_object"})", "response_format");
  refused(R"("functions":[{"name":"f"}])", "functions");
  refused(R"("modalities":["text","audio"])", "modalities");
  refused(R"("audio":{"voice":"x"})", "audio");
  refused(R"("prompt_logprobs":-1)", "prompt_logprobs");
  refused(R"("guided_json":{})", "guided_json");
  refused(R"("structured_outputs":{"json":{}})", "structured_outputs");
  refused(R"("lora_request":{"name":"x"})", "lora_request");
  refused(R"("reasoning_effort":"high")", "reasoning_effort");
  refused(R"("store":true)", "store");
  refused(R"("service_tier":"priority")", "service_tier");
  refused(R"("echo":true)", "echo");
  refused(R"("use_beam_search":true)", "use_beam_search");
  refused(R"("add_special_tokens":true)", "add_special_tokens");
  refused(R"("continue_final_message":true)", "continue_final_message");
  refused(R"("chat_template":"x")", "chat_template");
  CHECK_NOTHROW(chat(R"("tools":[],"tool_choice":"none","response_format":{"type":"text"},
      "functions":null,"modalities":["text"],"audio":null,"prompt_logprobs":null,"store":false,
      "service_tier":"auto","parallel_tool_calls":true,"safety_identifier":"x",
      "prompt_cache_key":"y","metadata":{},"logit_bias":{},"stop":[],"temperature":null,
      "length_penalty":1.0,"best_of":1,"priority":0,"stream_options":null)"));
}

TEST_CASE("a misspelt field is never ignored") {
  refused(R"("max_token":5)", "max_token", "unknown field \"max_token\"");
  refused(R"("stream":true,"stream_options":{"usage":true})", "stream_options.usage", "unknown");
  CHECK(error_of([] { (void)chat(R"("x":1)"); }).code == "unknown_parameter");
}

TEST_CASE("options of a stream need a stream") {
  refused(R"("stream_options":{"include_usage":true})", "stream_options", "stream is true");
  refused(R"("stream":true,"stream_options":{"include_obfuscation":true})",
          "stream_options.include_obfuscation");
  const auto alone = chat(R"("stream":true,"stream_options":{"continuous_usage_stats":true})");
  CHECK_FALSE(alone.continuous_usage);
}

TEST_CASE("a model that is not served is not found") {
  const auto problem = error_of([] { (void)chat(R"("model":"gpt-4o")"); });
  CHECK(problem.status == 404);
  CHECK(problem.type == "not_found_error");
  CHECK(problem.param == "model");
  CHECK(problem.code == "model_not_found");
  CHECK_THAT(problem.message, ContainsSubstring("gpt-4o") && ContainsSubstring("tiny-too"));
}

TEST_CASE("priorities are taken only where the scheduler obeys them") {
  refused(R"("priority":1)", "priority", "does not schedule by priority");
  limits bounds = test_bounds();
  bounds.allows_priority = true;
  CHECK(parse_chat(chat_with(R"("priority":-5)"), bounds).priority == -5);
}

TEST_CASE("a message to a person never holds a whole hostile value") {
  const auto problem =
      error_of([] { (void)chat(R"("temperature":")" + std::string(1'000'000, 'x') + "\""); });
  CHECK(problem.message.size() < 300);
  const auto name = error_of([] { (void)chat("\"" + std::string(1'000'000, 'x') + "\":1"); });
  CHECK(name.to_json().size() < 1000);
}
