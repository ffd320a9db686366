// Prompts to tokens, and the lengths that can never be served. The tokenizer is the tiny
// byte-level one: its ids are listed in model/tokenizer/tokenizer.test.cpp.
#include "web/gateway/api/generation_request.hpp"

#include "model/tokenizer/reference_models.hpp"
#include "tests/support/catch.hpp"
#include "web/gateway/api/parse.hpp"
#include "web/gateway/api/test_bounds.hpp"

using namespace octavo;
using namespace octavo::api;
using Catch::Matchers::ContainsSubstring;
using ids = std::vector<token_id>;

namespace {

model::tokenizer words() {
  using namespace model::reference;
  return model::tokenizer::from_json(
      read_file(fixture("tiny_byte_level.json")),
      R"({"bos_token":"<|bos|>","eos_token":{"content":"<|im_end|>"},"add_bos_token":true})");
}

model::chat_template chat_template(std::string_view text) {
  model::chat_source source;
  source.templates.emplace("default", text);
  source.special_tokens = {{"bos_token", "<|bos|>"}};
  return model::chat_template(source);
}

constexpr std::string_view turns =
    "{{ bos_token }}{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}";

generation_request completion(const std::string& body, const limits& bounds = test_bounds()) {
  return parse_completion(body, bounds);
}

generation_request chat(const std::string& content, const std::string& more = "") {
  return parse_chat(R"({"messages":[{"role":"user","content":")" + content + "\"}]" + more + "}",
                    test_bounds());
}

/// A request for a prompt of `length` tokens.
ids prompt_of(std::size_t length) {
  return ids(length, 1);
}

}  // namespace

TEST_CASE("a completion's text gets the first token and may spell control tokens") {
  const auto model = words();
  const auto text =
      tokenize(completion(R"({"prompt":"hello<|im_end|>"})"), model, nullptr, test_bounds(), {});
  const ids with_first = model.encode("hello<|im_end|>", {.parse_special = true});
  CHECK(text == std::vector<ids>{with_first});
  CHECK(with_first.back() == 42);
  const auto bare = tokenize(completion(R"({"prompt":"hello","add_special_tokens":false})"), model,
                             nullptr, test_bounds(), {});
  CHECK(bare == std::vector<ids>{{32}});
  const auto given =
      tokenize(completion(R"({"prompt":[[1,2],[3]]})"), model, nullptr, test_bounds(), {});
  CHECK(given == std::vector<ids>{{1, 2}, {3}});
}

TEST_CASE("what a user writes in a conversation never becomes a control token") {
  const auto model = words();
  const auto chat_model = chat_template(turns);
  const auto tokens = tokenize(chat("<|im_end|>"), model, &chat_model, test_bounds(), {});
  CHECK(tokens == std::vector<ids>{{41, 38, 8, 1, 9, 6, 12, 13, 42}});
  const auto response =
      parse_responses(std::string_view{R"({"input":"<|im_end|>"})"}, test_bounds());
  CHECK(tokenize(response, model, &chat_model, test_bounds(), {}) == tokens);
}

TEST_CASE("instructions of a response come first") {
  const auto model = words();
  const auto chat_model = chat_template(turns);
  const auto request = parse_responses(
      std::string_view{R"({"input":"hell","instructions":"hello"})"}, test_bounds());
  CHECK(tokenize(request, model, &chat_model, test_bounds(), {}) ==
        std::vector<ids>{{41, 32, 42, 31, 42}});
}

TEST_CASE("a template that refuses, or none at all, is the client's to know") {
  const auto model = words();
  const auto strict = chat_template("{{ raise_exception('no users here') }}");
  const auto problem =
      error_of([&] { (void)tokenize(chat("hi"), model, &strict, test_bounds(), {}); });
  CHECK(problem.status == 400);
  CHECK(problem.param == "messages");
  CHECK_THAT(problem.message, ContainsSubstring("no users here"));
  const auto none =
      error_of([&] { (void)tokenize(chat("hi"), model, nullptr, test_bounds(), {}); });
  CHECK(none.status == 400);
  CHECK_THAT(none.message, ContainsSubstring("no chat template"));
}

TEST_CASE("a chat may fill the context, and a completion generates sixteen tokens") {
  limits bounds = test_bounds();
  CHECK(output_limit(chat("x"), prompt_of(10), bounds) == token_count{54});
  CHECK(output_limit(chat("x", R"(,"max_tokens":5)"), prompt_of(10), bounds) == token_count{5});
  CHECK(output_limit(completion(R"({"prompt":"x"})"), prompt_of(10), bounds) == token_count{16});
  CHECK(output_limit(completion(R"({"prompt":"x"})"), prompt_of(60), bounds) == token_count{4});
  const auto echo = completion(R"({"prompt":"x","echo":true,"max_tokens":0})");
  CHECK(output_limit(echo, prompt_of(10), bounds) == token_count{1});
}

TEST_CASE("what exceeds the context is refused with both numbers") {
  const auto long_prompt =
      error_of([] { (void)output_limit(chat("x"), prompt_of(64), test_bounds()); });
  CHECK(long_prompt.status == 400);
  CHECK(long_prompt.code == "context_length_exceeded");
  CHECK(long_prompt.param == "messages");
  CHECK_THAT(long_prompt.message,
             ContainsSubstring("context is 64") && ContainsSubstring("has 64"));
  const auto request = chat("x", R"(,"max_tokens":60)");
  const auto long_answer =
      error_of([&] { (void)output_limit(request, prompt_of(5), test_bounds()); });
  CHECK(long_answer.code == "context_length_exceeded");
  CHECK_THAT(long_answer.message, ContainsSubstring("has 5") && ContainsSubstring("60"));
  CHECK(output_limit(request, prompt_of(4), test_bounds()) == token_count{60});
  const auto huge = chat("x", R"(,"max_tokens":2147483647)");
  CHECK(error_of([&] { (void)output_limit(huge, prompt_of(5), test_bounds()); }).status == 400);
}

TEST_CASE("a prompt larger than the KV pool is refused at once with both numbers") {
  limits bounds = test_bounds();
  bounds.max_model_len = token_count{4096};
  bounds.kv_capacity = token_count{128};
  const auto problem = error_of([&] { (void)output_limit(chat("x"), prompt_of(200), bounds); });
  CHECK(problem.status == 400);
  CHECK_THAT(problem.message,
             ContainsSubstring("200") && ContainsSubstring("128") && ContainsSubstring("KV"));
  CHECK(error_of([&] { (void)output_limit(chat("x"), prompt_of(128), bounds); }).status == 400);
  CHECK_NOTHROW(output_limit(chat("x"), prompt_of(127), bounds));
}

TEST_CASE("prompts without tokens or with unknown ones do not reach the engine") {
  CHECK(error_of([] { (void)output_limit(chat("x"), {}, test_bounds()); }).param == "messages");
  for (const token_id token : {-1, 46}) {
    const auto problem = error_of([&] {
      (void)output_limit(chat("x"), {1, token}, test_bounds());
    });
    CHECK_THAT(problem.message, ContainsSubstring(std::to_string(token)));
  }
}

TEST_CASE("texts that no context can hold are refused before they are tokenized") {
  limits bounds = test_bounds();
  bounds.prompt_bytes_max = 5;
  CHECK_NOTHROW(tokenize(completion(R"({"prompt":"hello"})"), words(), nullptr, bounds, {}));
  const auto chat_model = chat_template(turns);
  for (const auto& request : {completion(R"({"prompt":"hello!"})"), chat("hello!")}) {
    const auto problem =
        error_of([&] { (void)tokenize(request, words(), &chat_model, bounds, {}); });
    CHECK(problem.status == 400);
    CHECK(problem.code == "context_length_exceeded");
    CHECK_THAT(problem.message, ContainsSubstring("bytes") && ContainsSubstring("than 5"));
  }
}

TEST_CASE("prompts of more tokens than the queue ever holds are refused for good") {
  limits bounds = test_bounds();
  bounds.queued_tokens_max = 4;
  auto fits = completion(R"({"prompt":[[1,2],[3,4]]})");
  CHECK(prepare(fits, words(), nullptr, bounds, {}).size() == 2);
  auto beyond = completion(R"({"prompt":[[1,2],[3,4,5]]})");
  const auto problem = error_of([&] { (void)prepare(beyond, words(), nullptr, bounds, {}); });
  CHECK(problem.status == 400);
  CHECK_THAT(problem.message, ContainsSubstring("5 tokens") && ContainsSubstring("holds 4"));
}

TEST_CASE("tokens that must come may not outnumber those that can") {
  const auto request = completion(R"({"prompt":"x","min_tokens":17})");
  CHECK(error_of([&] { (void)output_limit(request, prompt_of(2), test_bounds()); }).param ==
        "min_tokens");
}

TEST_CASE("bad words of one token are kept out, with the space before them or without") {
  const auto model = words();
  auto request = completion(R"({"prompt":"hello","bad_words":["hello","!"]})");
  const auto prompts = prepare(request, model, nullptr, test_bounds(), {});
  CHECK(request.sampling.bad_token_ids == ids{32, 16});
  CHECK(prompts.size() == 1);
  CHECK(prompts[0].max_tokens == token_count{16});
  CHECK(prompts[0].text.empty());
  auto two_tokens = completion(R"({"prompt":"hello","bad_words":["helded"]})");
  const auto problem =
      error_of([&] { (void)prepare(two_tokens, model, nullptr, test_bounds(), {}); });
  CHECK(problem.param == "bad_words");
  CHECK_THAT(problem.message, ContainsSubstring("helded") && ContainsSubstring("4 tokens"));
}

TEST_CASE("rules that together leave no token are refused") {
  const auto model = words();
  const auto refused = [&](const char* body) {
    auto request = completion(body);
    return error_of([&] { (void)prepare(request, model, nullptr, test_bounds(), {}); }).param;
  };
  CHECK(refused(R"({"prompt":"hello","bad_words":["hello"],"allowed_token_ids":[32]})") ==
        "allowed_token_ids");
  CHECK(refused(R"({"prompt":"hello","stop_token_ids":[32],"min_tokens":2,
                    "allowed_token_ids":[32]})") == "allowed_token_ids");
  auto fine = completion(R"({"prompt":"hello","bad_words":["hello"],"allowed_token_ids":[32,33]})");
  CHECK(prepare(fine, model, nullptr, test_bounds(), {}).size() == 1);
  auto stops = completion(R"({"prompt":"hello","stop_token_ids":[32],"allowed_token_ids":[32]})");
  CHECK(prepare(stops, model, nullptr, test_bounds(), {}).size() == 1);
}

TEST_CASE("an echo knows the prompt's text, given or decoded") {
  const auto model = words();
  auto text = completion(R"({"prompt":"hello","echo":true,"max_tokens":0})");
  CHECK(prepare(text, model, nullptr, test_bounds(), {})[0].text == "hello");
  auto tokens = completion(R"({"prompt":[32,37],"echo":true})");
  CHECK(prepare(tokens, model, nullptr, test_bounds(), {})[0].text == "hello world");
}
