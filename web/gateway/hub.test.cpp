// Requests under way, with an engine of the test's own: what clients hear, in which
// order, and what the engine is told.
#include "web/gateway/hub.hpp"

#include <memory>
#include <string>
#include <vector>

#include "model/tokenizer/byte_tokenizer.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/posted_work.hpp"
#include "web/gateway/api/parse.hpp"

using namespace octavo;
using namespace octavo::gateway;

namespace {

class scripted_engine final : public engine_link {
 public:
  void submit(std::vector<request_spec> requests) override {
    for (request_spec& spec : requests) submitted.push_back(std::move(spec));
  }
  void cancel(request_id id) override { cancelled.push_back(id.raw()); }
  void drain() override {}
  void ask_statistics(std::function<void(const actors::statistics_list&)> answer) override {
    answer({});
  }
  void ask_explanation(request_id, std::function<void(std::string)> answer) override { answer({}); }

  std::vector<request_spec> submitted;
  std::vector<std::uint64_t> cancelled;
};

// Writes down what it hears; the lines outlive it.
class scribe final : public listener {
 public:
  scribe(std::vector<std::string>& lines, api::answer_timings& timings)
      : last_timings(timings), lines_(lines) {}
  void accepted() override { lines_.push_back("accepted"); }
  void text(std::int32_t index, std::string_view text, std::span<const api::token_info>) override {
    lines_.push_back(std::to_string(index) + ": " + std::string{text});
  }
  void ended(std::int32_t index, const api::ending& how) override {
    std::string line = std::to_string(index) + " ends by " + how.reason;
    if (const auto* text = std::get_if<std::string>(&how.stop_reason)) line += " \"" + *text + "\"";
    if (const auto* id = std::get_if<token_id>(&how.stop_reason)) line += " " + std::to_string(*id);
    lines_.push_back(line);
  }
  void done(const api::token_usage& usage, const api::answer_timings& timings) override {
    lines_.push_back("done, " + std::to_string(usage.prompt_tokens) + " in, " +
                     std::to_string(usage.completion_tokens) + " out, " +
                     std::to_string(usage.cached_tokens) + " cached");
    last_timings = timings;
  }
  void failed(const api::api_error& why) override {
    lines_.push_back("failed with " + std::to_string(why.status));
  }

  api::answer_timings& last_timings;

 private:
  std::vector<std::string>& lines_;
};

struct front {
  served_model model() const {
    served_model m;
    m.words = std::make_shared<const model::tokenizer>(model::byte_tokenizer());
    m.limits.served_model_names = {"m"};
    m.limits.max_model_len = token_count{20'000};
    m.limits.kv_capacity = token_count{100'000};
    m.limits.vocab_size = 256;
    return m;
  }
  explicit front(bool has_worker = false) {
    if (has_worker) worker = std::make_unique<preparer>(posted.taker());
    requests = std::make_unique<hub>(model(), engine,
                                     hub_clocks{[this] { return now_s; }, [] { return 0; }}, counts,
                                     nullptr, worker.get());
  }
  ~front() {
    if (worker) worker->stop();
  }
  std::uint64_t ask(const std::string& body) {
    return requests->start(
        api::parse_completion(body, requests->model().limits),
        [this](request_id, const generation&) { return std::make_unique<scribe>(lines, timings); },
        [this](const api::api_error& why) {
          lines.push_back(std::to_string(why.status) + " " + why.message);
        });
  }
  void accept(std::uint64_t id) {
    actors::event_batch events;
    events.accepted.push_back({request_id{id}, {}});
    requests->hear(events);
  }
  void say(std::uint64_t id, const std::string& text, std::uint16_t sample = 0) {
    actors::event_batch events;
    token_event token{request_id{id}, {}, sample, 65, 0, static_cast<std::uint32_t>(text.size())};
    events.text = text;
    events.tokens.push_back(token);
    requests->hear(events);
  }
  void token(std::uint64_t id, token_id which, std::uint16_t sample = 0) {
    actors::event_batch events;
    events.tokens.push_back({request_id{id}, {}, sample, which});
    requests->hear(events);
  }
  void end(std::uint64_t id, reason why, std::uint16_t sample = 0, bool all = true,
           int cached = 0) {
    actors::event_batch events;
    finish_event end;
    end.request = request_id{id};
    end.sample = sample;
    end.request_done = all;
    end.why = why;
    end.cached_tokens = token_count{cached};
    events.finishes.push_back(end);
    requests->hear(events);
  }

  double now_s = 100;
  std::vector<std::string> lines;
  api::answer_timings timings;
  scripted_engine engine;
  metrics counts{{.prefix = "vllm", .model_name = "m", .max_model_len = 200}};
  octavo::testing::posted_work posted;
  std::unique_ptr<preparer> worker;
  std::unique_ptr<hub> requests;
};

}  // namespace

TEST_CASE("a request is accepted, speaks, ends and is done, in this order") {
  front f;
  f.ask(R"({"prompt":"Hello","max_tokens":5})");
  REQUIRE(f.engine.submitted.size() == 1);
  CHECK(f.engine.submitted[0].prompt_tokens == token_count{5});
  CHECK(f.engine.submitted[0].max_tokens == token_count{5});
  f.accept(1);
  f.say(1, "ab");
  f.say(1, "c");
  f.end(1, reason::finished_length, 0, true, 3);
  CHECK(f.lines == std::vector<std::string>{"accepted", "0: ab", "0: c", "0 ends by length",
                                            "done, 5 in, 2 out, 3 cached"});
  CHECK(f.requests->live() == 0);
  CHECK(f.engine.cancelled.empty());
}

TEST_CASE("sample k of prompt p has the index p n + k, and the request is done with the last") {
  front f;
  f.ask(R"({"prompt":["one","two"],"n":2,"max_tokens":5})");
  REQUIRE(f.engine.submitted.size() == 2);
  f.accept(1);
  CHECK(f.lines.empty());
  f.accept(2);
  f.say(2, "x", 1);
  f.end(2, reason::finished_eos, 1, false);
  f.end(1, reason::finished_eos, 0, false);
  f.end(1, reason::finished_stop, 1);
  CHECK(f.requests->live() == 1);
  f.end(2, reason::finished_eos, 0);
  CHECK(f.lines == std::vector<std::string>{"accepted", "3: x", "3 ends by stop", "0 ends by stop",
                                            "1 ends by stop", "2 ends by stop",
                                            "done, 6 in, 1 out, 0 cached"});
}

TEST_CASE("an end tells the stop string or the stop token, and nothing for the model's own") {
  front f;
  f.ask(R"({"prompt":"x","n":4,"max_tokens":9,"stop":["yz","xy"],"stop_token_ids":[35]})");
  for (const token_id t : {'a', 'x', 'y'}) f.token(1, t, 0);
  f.end(1, reason::finished_stop, 0, false);
  for (const token_id t : {'y', 'z'}) f.token(1, t, 1);
  f.end(1, reason::finished_stop, 1, false);
  for (const token_id t : {token_id{'x'}, 35}) f.token(1, t, 2);
  f.end(1, reason::finished_stop, 2, false);
  f.token(1, 'x', 3);
  f.end(1, reason::finished_eos, 3);
  f.lines.pop_back();
  CHECK(f.lines == std::vector<std::string>{"0 ends by stop \"xy\"", "1 ends by stop \"yz\"",
                                            "2 ends by stop 35", "3 ends by stop"});
}

TEST_CASE("who is gone cancels every prompt that lives, and hears nothing more") {
  front f;
  const std::uint64_t number = f.ask(R"({"prompt":["one","two","three"],"max_tokens":5})");
  f.accept(1);
  f.end(2, reason::finished_eos);
  f.lines.clear();
  f.requests->cancel(number);
  CHECK(f.engine.cancelled == std::vector<std::uint64_t>{1, 3});
  f.say(1, "late");
  f.end(1, reason::finished_cancelled);
  f.requests->cancel(number);
  CHECK(f.lines.empty());
  CHECK(f.engine.cancelled.size() == 2);
  CHECK(f.requests->live() == 0);
}

TEST_CASE("a refusal has its own status, and takes the request's other prompts with it") {
  const auto [why, line] = GENERATE(std::pair{reason::rejected_queue_full, "failed with 503"},
                                    std::pair{reason::rejected_draining, "failed with 503"},
                                    std::pair{reason::rejected_never_fits, "failed with 400"},
                                    std::pair{reason::rejected_too_long, "failed with 400"},
                                    std::pair{reason::finished_executor_failed, "failed with 500"});
  front f;
  f.ask(R"({"prompt":["one","two"],"max_tokens":5})");
  f.accept(1);
  f.end(2, why);
  CHECK(f.lines == std::vector<std::string>{line});
  CHECK(f.engine.cancelled == std::vector<std::uint64_t>{1});
  CHECK(f.requests->live() == 0);
}

TEST_CASE("equal prompts have equal keys, but not under another salt") {
  front f;
  const std::string prompt(40, 'p');
  f.ask(R"({"prompt":")" + prompt + R"("})");
  f.ask(R"({"prompt":")" + prompt + R"("})");
  f.ask(R"({"prompt":")" + prompt + R"(","cache_salt":"tenant"})");
  REQUIRE(f.engine.submitted.size() == 3);
  CHECK(f.engine.submitted[0].keys.size() == 2);
  CHECK(f.engine.submitted[0].keys == f.engine.submitted[1].keys);
  CHECK(f.engine.submitted[0].keys[0] != f.engine.submitted[2].keys[0]);
}

TEST_CASE("the hub is stuck only when something is under way and nothing was heard") {
  front f;
  f.now_s += 1000;
  CHECK_FALSE(f.requests->is_stuck(60));
  f.ask(R"({"prompt":"a"})");
  f.now_s += 59;
  CHECK_FALSE(f.requests->is_stuck(60));
  f.now_s += 2;
  CHECK(f.requests->is_stuck(60));
  f.accept(1);
  CHECK_FALSE(f.requests->is_stuck(60));
}

TEST_CASE("logprobs of an echoed prompt are refused by name") {
  front f;
  CHECK_THROWS_AS(f.ask(R"({"prompt":"a","echo":true,"logprobs":1})"), api::api_error);
  CHECK(f.requests->live() == 0);
  CHECK(f.engine.submitted.empty());
}

TEST_CASE("a long prompt becomes the same submission and the same refusals on either thread") {
  front here;
  front there{true};
  const std::string text(17'000, 'p');
  const std::string more =
      GENERATE(as<std::string>{}, R"("n":2,"cache_salt":"tenant")", R"("echo":true,"max_tokens":0)",
               R"("bad_words":["a","b"])", R"("max_tokens":19000)", R"("bad_words":["ab"])");
  const std::string body =
      R"({"prompt":[")" + text + R"(","q"])" + (more.empty() ? "" : ",") + more + "}";
  try {
    here.ask(body);
  } catch (const api::api_error& why) {
    here.lines.push_back(std::to_string(why.status) + " " + why.message);
  }
  there.ask(body);
  CHECK(there.engine.submitted.empty());
  CHECK(there.requests->live() == 1);
  there.posted.run_next();
  CHECK(there.lines == here.lines);
  CHECK(there.requests->live() == here.requests->live());
  REQUIRE(there.engine.submitted.size() == here.engine.submitted.size());
  CHECK(here.lines.size() + here.engine.submitted.size() / 2 == 1);
  for (std::size_t i = 0; i < here.engine.submitted.size(); ++i) {
    const request_spec& one = here.engine.submitted[i];
    const request_spec& two = there.engine.submitted[i];
    CHECK(one.id == two.id);
    CHECK(*one.prompt == *two.prompt);
    CHECK(one.keys == two.keys);
    CHECK(one.max_tokens == two.max_tokens);
    CHECK(one.n == two.n);
    CHECK(one.sampling->bad_token_ids == two.sampling->bad_token_ids);
  }
}

TEST_CASE("a request's times begin with its arrival, and preparing counts as queueing") {
  front f{true};
  f.ask(R"({"prompt":")" + std::string(17'000, 'p') + R"("})");
  f.now_s += 1000;
  // Nothing that the engine has is slow.
  CHECK_FALSE(f.requests->is_stuck(60));
  f.posted.run_next();
  CHECK_FALSE(f.requests->is_stuck(60));
  f.now_s += 2;
  f.token(1, 'a');
  f.now_s += 3;
  f.end(1, reason::finished_eos);
  CHECK(f.timings.queue_ms == 1'000'000);
  CHECK(f.timings.ttft_ms == 1'002'000);
  CHECK(f.timings.total_ms == 1'005'000);
}

TEST_CASE("a request that was cancelled or failed while it was prepared is not begun") {
  front f{true};
  const std::string body = R"({"prompt":")" + std::string(17'000, 'p') + R"("})";
  const auto first = f.ask(body);
  f.ask(body);
  f.ask(R"({"prompt":"short"})");
  f.posted.wait();
  f.requests->cancel(first);
  f.requests->fail_preparing(api::overloaded("over"));
  CHECK(f.lines == std::vector<std::string>{"503 over"});
  CHECK(f.requests->live() == 1);
  CHECK(f.worker->live() == 0);
  f.worker->stop();
  while (f.posted.size() > 0) f.posted.run_next();
  CHECK(f.engine.submitted.size() == 1);
  CHECK(f.lines.size() == 1);
}
