// What is particular to each endpoint: messages, prompts, input, tokens, events.
#include "web/gateway/api/parse.hpp"

#include "tests/support/catch.hpp"
#include "web/gateway/api/test_bounds.hpp"

using namespace octavo;
using namespace octavo::api;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using ids = std::vector<token_id>;

namespace {

template <class Parse>
void refused(Parse parse, const std::string& body, const std::string& param,
             const std::string& message = "") {
  INFO(body);
  const auto problem = error_of([&] { (void)parse(body, test_bounds()); });
  CHECK(problem.status == 400);
  CHECK(problem.param == param);
  CHECK_THAT(problem.message, ContainsSubstring(message));
}

generation_request responses(const std::string& body) {
  return parse_responses(std::string_view{body}, test_bounds());
}

generation_request parse_response_text(std::string_view body, const limits& bounds) {
  return parse_responses(body, bounds);
}

json turns(const generation_request& request) {
  return std::get<conversation>(request.prompts.at(0)).messages;
}

std::string chat_of(const std::string& messages) {
  return R"({"messages":)" + messages + "}";
}

std::string completion_of(const std::string& prompt, const std::string& more = "") {
  return R"({"prompt":)" + prompt + (more.empty() ? "" : "," + more) + "}";
}

}  // namespace

// ---- chat ------------------------------------------------------------------

TEST_CASE("parts of a message become one text, and a developer is a system") {
  const auto request = parse_chat(chat_of(R"([{"role":"developer","content":"Be brief"},
                  {"role":"user","name":"Ann","content":[{"type":"text","text":"a"},
                                                         {"type":"input_text","text":"b"}]},
                  {"role":"assistant","content":"c","refusal":null,"tool_calls":[]}])"),
                                  test_bounds());
  CHECK(turns(request) == json::parse(R"([{"role":"system","content":"Be brief"},
      {"role":"user","content":"a\nb","name":"Ann"},{"role":"assistant","content":"c"}])"));
}

TEST_CASE("messages that cannot be read are refused by their place") {
  refused(parse_chat, "{}", "messages", "missing");
  refused(parse_chat, chat_of("[]"), "messages");
  refused(parse_chat, chat_of(R"("Hi")"), "messages");
  refused(parse_chat, chat_of("[1]"), "messages[0]", "an object is expected");
  refused(parse_chat, chat_of(R"([{"role":"user"}])"), "messages[0].content");
  refused(parse_chat, chat_of(R"([{"content":"x"}])"), "messages[0].role");
  refused(parse_chat, chat_of(R"([{"role":"boss","content":"x"}])"), "messages[0].role");
  refused(parse_chat, chat_of(R"([{"role":"tool","content":"x"}])"), "messages[0].role",
          "tools are not supported");
  refused(parse_chat, chat_of(R"([{"role":"assistant","content":null,"tool_calls":[{"id":"1"}]}])"),
          "messages[0].tool_calls");
  refused(parse_chat, chat_of(R"([{"role":"user","content":[]}])"), "messages[0].content");
  refused(parse_chat,
          chat_of(R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}])"),
          "messages[0].content[0].type", "image_url");
  refused(parse_chat, chat_of(R"([{"role":"user","content":[{"type":"text","text":1}]}])"),
          "messages[0].content[0].text");
  refused(parse_chat, chat_of(R"([{"role":"user","content":"x","contents":"y"}])"),
          "messages[0].contents", "unknown");
}

TEST_CASE("the number of messages is bounded") {
  limits bounds = test_bounds();
  bounds.messages_max = 1;
  const std::string two =
      chat_of(R"([{"role":"user","content":"a"},{"role":"user","content":"b"}])");
  CHECK(error_of([&] { (void)parse_chat(two, bounds); }).param == "messages");
}

TEST_CASE("the newer name of the limit counts, and two that differ do not") {
  const std::string front = R"({"messages":[{"role":"user","content":"x"}],)";
  CHECK(parse_chat(front + R"("max_completion_tokens":7})", test_bounds()).max_tokens == 7);
  refused(parse_chat, front + R"("max_completion_tokens":7,"max_tokens":8})", "max_tokens",
          "differs");
}

TEST_CASE("variables for the template are passed on") {
  const auto request = parse_chat(R"({"messages":[{"role":"user","content":"x"}],
      "chat_template_kwargs":{"enable_thinking":false},"add_generation_prompt":false})",
                                  test_bounds());
  const auto& talk = std::get<conversation>(request.prompts.at(0));
  CHECK(json(talk.variables) == json::parse(R"({"enable_thinking":false})"));
  CHECK_FALSE(talk.add_generation_prompt);
}

// ---- completions -----------------------------------------------------------

TEST_CASE("a completion has one prompt or many, as text or tokens") {
  const auto prompts = [](const std::string& prompt) {
    return parse_completion(completion_of(prompt), test_bounds()).prompts;
  };
  CHECK(prompts(R"("ab")") == std::vector<prompt_input>{std::string{"ab"}});
  CHECK(prompts(R"(["ab","c"])") == std::vector<prompt_input>{std::string{"ab"}, std::string{"c"}});
  CHECK(prompts("[0,45]") == std::vector<prompt_input>{ids{0, 45}});
  CHECK(prompts("[[1,2],[3]]") == std::vector<prompt_input>{ids{1, 2}, ids{3}});
}

TEST_CASE("empty prompts and tokens outside the vocabulary are refused") {
  for (const char* empty : {R"("")", "[]", "[[]]", R"([""])", "null", R"(["a",""])"}) {
    refused(parse_completion, completion_of(empty), "prompt");
  }
  refused(parse_completion, "{}", "prompt", "missing");
  refused(parse_completion, completion_of("[-1,5]"), "prompt[0]", "is -1");
  refused(parse_completion, completion_of("[5,2147483648]"), "prompt[1]", "2147483648");
  refused(parse_completion, completion_of("[46]"), "prompt[0]", "from 0 to 45");
  refused(parse_completion, completion_of("[[1],[1.5]]"), "prompt[1][0]");
  refused(parse_completion, completion_of(R"([1,"a"])"), "prompt[1]");
  refused(parse_completion, completion_of(R"(["a",1])"), "prompt");
  refused(parse_completion, completion_of("7"), "prompt");
}

TEST_CASE("prompts times samples are bounded") {
  limits bounds = test_bounds();
  bounds.sequences_max = 4;
  const auto problem = error_of(
      [&] { (void)parse_completion(completion_of(R"(["a","b","c"])", "\"n\":2"), bounds); });
  CHECK(problem.param == "n");
  CHECK_THAT(problem.message, ContainsSubstring("6") && ContainsSubstring("up to 4"));
  CHECK(error_of([&] {
          (void)parse_completion(completion_of(R"(["a","b","c","d","e"])"), bounds);
        }).param == "prompt");
}

TEST_CASE("a list of more tokens than the context is refused before it is read") {
  std::string list = "[1";
  for (int i = 0; i < 5000; ++i) list += ",1";
  refused(parse_completion, completion_of(list + "]"), "prompt", "5001 tokens");
}

TEST_CASE("a request of more prompts than the queue ever holds is refused for good") {
  limits bounds = test_bounds();
  bounds.queued_prompts_max = 2;
  CHECK_NOTHROW(parse_completion(completion_of(R"(["a","b"])"), bounds));
  const auto problem =
      error_of([&] { (void)parse_completion(completion_of(R"(["a","b","c"])"), bounds); });
  CHECK(problem.status == 400);
  CHECK(problem.param == "prompt");
  CHECK_THAT(problem.message, ContainsSubstring("3 prompts") && ContainsSubstring("holds 2"));
}

TEST_CASE("an echo may generate nothing, and only an echo") {
  const auto request = parse_completion(
      completion_of(R"("a")", R"("echo":true,"max_tokens":0,"logprobs":1)"), test_bounds());
  CHECK(request.only_echoes());
  CHECK(request.wants_prompt_logprobs());
  CHECK(request.sampling.logprobs == 1);
  refused(parse_completion, completion_of(R"("a")", R"("max_tokens":0)"), "max_tokens");
}

TEST_CASE("a completion's log-probabilities are a number, capped by the server") {
  refused(parse_completion, completion_of(R"("a")", R"("logprobs":21)"), "logprobs", "0 to 20");
  refused(parse_completion, completion_of(R"("a")", R"("logprobs":-1)"), "logprobs");
  refused(parse_completion, completion_of(R"("a")", R"("logprobs":true)"), "logprobs");
  refused(parse_completion, completion_of(R"("a")", R"("prompt_logprobs":-1)"), "prompt_logprobs");
  CHECK(parse_completion(completion_of(R"("a")", R"("logprobs":0)"), test_bounds())
            .sampling.logprobs == 0);
}

TEST_CASE("best_of may only repeat n, and a suffix may only be nothing") {
  refused(parse_completion, completion_of(R"("a")", R"("best_of":2)"), "best_of");
  refused(parse_completion, completion_of(R"("a")", R"("suffix":"z")"), "suffix");
  CHECK_NOTHROW(parse_completion(completion_of(R"("a")", R"("n":2,"best_of":2,"suffix":null)"),
                                 test_bounds()));
}

// ---- responses -------------------------------------------------------------

TEST_CASE("the input of a response is a text or messages, after its instructions") {
  CHECK(turns(responses(R"({"input":"Hi"})")) ==
        json::parse(R"([{"role":"user","content":"Hi"}])"));
  const auto request = responses(R"({"instructions":"Be brief","max_output_tokens":9,"input":[
      {"role":"user","content":[{"type":"input_text","text":"a"}]},
      {"type":"message","id":"msg_1","status":"completed","role":"assistant",
       "content":[{"type":"output_text","text":"b","annotations":[],"logprobs":[]}]},
      {"role":"developer","content":"c"}]})");
  CHECK(request.endpoint == endpoint_kind::responses);
  CHECK(request.max_tokens == 9);
  CHECK(request.instructions == "Be brief");
  CHECK(turns(request) == json::parse(R"([{"role":"system","content":"Be brief"},
      {"role":"user","content":"a"},{"role":"assistant","content":"b"},
      {"role":"system","content":"c"}])"));
}

TEST_CASE("what a response cannot be is refused by name") {
  const auto bad = [](const std::string& fields, const std::string& param) {
    refused(parse_response_text, R"({"input":"Hi",)" + fields + "}", param);
  };
  bad(R"("previous_response_id":"resp_1")", "previous_response_id");
  bad(R"("background":true)", "background");
  bad(R"("reasoning":{"effort":"low"})", "reasoning");
  bad(R"("truncation":"auto")", "truncation");
  bad(R"("include":["reasoning.encrypted_content"])", "include");
  bad(R"("text":{"format":{"type":"json_object"}})", "text");
  bad(R"("tool_choice":"required")", "tool_choice");
  bad(R"("store":true)", "store");
  bad(R"("n":2)", "n");
  bad(R"("max_tokens":2)", "max_tokens");
  bad(R"("top_logprobs":2)", "top_logprobs");
  refused(parse_response_text, "{}", "input");
  refused(parse_response_text, R"({"input":""})", "input");
  refused(parse_response_text, R"({"input":[]})", "input");
  refused(parse_response_text, R"({"input":[{"type":"function_call_output","output":"x"}]})",
          "input[0].type");
  CHECK_NOTHROW(responses(R"({"input":"Hi","background":false,"include":[],"reasoning":{},
      "truncation":"disabled","text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],
      "store":false,"previous_response_id":null,"stream":true})"));
  CHECK(responses(R"({"input":"x","include":["message.output_text.logprobs"],"top_logprobs":2})")
            .sampling.logprobs == 2);
}

TEST_CASE("events of a socket name the response they are about") {
  const auto create =
      parse_client_event(R"({"type":"response.create","id":"a","model":"tiny","input":"Hi"})");
  CHECK(create.what == client_event::kind::create);
  CHECK(create.id == "a");
  CHECK(create.id_field == "id");
  CHECK(turns(parse_responses(create.body, test_bounds())).size() == 1);
  const auto lane = parse_client_event(R"({"type":"response.create","stream_id":"b","input":"x"})");
  CHECK(lane.id == "b");
  CHECK(lane.id_field == "stream_id");
  CHECK_NOTHROW(parse_responses(lane.body, test_bounds()));
  const auto cancel = parse_client_event(R"({"type":"response.cancel","id":"a"})");
  CHECK(cancel.what == client_event::kind::cancel);
  CHECK(cancel.id == "a");
}

TEST_CASE("the name in a refused event is read as far as it can be") {
  const auto name = [](const std::string& message) {
    const client_event found = name_in_refused(message);
    return found.id_field + "=" + found.id;
  };
  CHECK(name(R"({"id":"a"})") == "id=a");
  CHECK(name(R"({"stream_id":"b","type":7})") == "stream_id=b");
  CHECK(name(R"({"id":"a","stream_id":"b"})") == "id=a");
  CHECK(name(R"({"input":[{"id":"deep"}],"id":"a","x")") == "id=a");
  CHECK(name(R"({"id":"a","input":)" + std::string(100'000, '[')) == "id=a");
  CHECK(name(R"({"id":{"id":"deep"}})") == "id=");
  CHECK(name(R"({"id":7,"stream_id":"b")") == "stream_id=b");
  CHECK(name(R"({"id":")" + std::string(129, 'x') + "\"}") == "id=");
  CHECK(name(R"(["id","a"])") == "id=");
  CHECK(name("") == "id=");
}

TEST_CASE("a chat template that cannot be used is told to whoever needs it") {
  limits bounds = test_bounds();
  bounds.chat_problem = "the chat template cannot be used: line 3";
  const auto told = [](const auto& call, const std::string& param) {
    const auto problem = error_of(call);
    CHECK(problem.status == 400);
    CHECK(problem.param == param);
    CHECK(problem.message == param + ": the chat template cannot be used: line 3");
  };
  const std::string talk = R"([{"role":"user","content":"x"}])";
  told([&] { (void)parse_chat(R"({"messages":)" + talk + "}", bounds); }, "messages");
  told([&] { (void)parse_responses(parse_object(R"({"input":"x"})"), bounds); }, "input");
  told([&] { (void)parse_responses(parse_object(R"({"input":)" + talk + "}"), bounds); }, "input");
  told([&] { (void)parse_tokenize(R"({"messages":)" + talk + "}", bounds); }, "messages");
  CHECK_NOTHROW(parse_completion(R"({"prompt":"x"})", bounds));
}

TEST_CASE("events that are unknown or have no place for an id are refused") {
  const auto bad = [](const std::string& message, const std::string& param) {
    INFO(message);
    const auto problem = error_of([&] { (void)parse_client_event(message); });
    CHECK(problem.status == 400);
    CHECK(problem.param == param);
  };
  bad(R"({"id":"a"})", "type");
  bad(R"({"type":"session.update"})", "type");
  bad(R"({"type":"response.create","id":""})", "id");
  bad(R"({"type":"response.create","id":7})", "id");
  bad(R"({"type":"response.create","id":"a","stream_id":"b"})", "stream_id");
  bad(R"({"type":"response.create","id":")" + std::string(129, 'x') + "\"}", "id");
  bad(R"({"type":"response.cancel","id":"a","input":"x"})", "input");
  bad("[", "");
}

// ---- tokens ----------------------------------------------------------------

TEST_CASE("a text or a conversation is to be tokenized, not both") {
  const auto text = parse_tokenize(R"({"model":"tiny","prompt":"ab","add_special_tokens":false,
      "return_token_strs":true})",
                                   test_bounds());
  CHECK(text.input.prompts == std::vector<prompt_input>{std::string{"ab"}});
  CHECK_FALSE(text.input.add_special_tokens);
  CHECK(text.return_token_strs);
  const auto talk = parse_tokenize(chat_of(R"([{"role":"user","content":"x"}])"), test_bounds());
  CHECK(turns(talk.input).size() == 1);
  refused(parse_tokenize, "{}", "prompt");
  refused(parse_tokenize, R"({"prompt":"a","messages":[]})", "messages");
  refused(parse_tokenize, R"({"prompt":["a"]})", "prompt");
  refused(parse_tokenize, R"({"prompt":"a","add_generation_prompt":true})",
          "add_generation_prompt");
}

TEST_CASE("only tokens of the vocabulary are detokenized") {
  CHECK(parse_detokenize(R"({"tokens":[1,2]})", test_bounds()).tokens == ids{1, 2});
  CHECK(parse_detokenize(R"({"tokens":[]})", test_bounds()).tokens.empty());
  refused(parse_detokenize, "{}", "tokens");
  refused(parse_detokenize, R"({"tokens":"a"})", "tokens");
  refused(parse_detokenize, R"({"tokens":[46]})", "tokens[0]");
  refused(parse_detokenize, R"({"tokens":[-1]})", "tokens[0]");
}
