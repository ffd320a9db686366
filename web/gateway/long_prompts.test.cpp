// Long prompts over the network, in front of an engine of the test's own: while one is being
// prepared, for as long as the test likes, the others go on; and however it ends, it ends once.
#include <condition_variable>
#include <ctime>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "actors/wall_clock.hpp"
#include "model/tokenizer/byte_tokenizer.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/raw_client.hpp"
#include "web/gateway/gateway.hpp"

using namespace octavo;
using namespace octavo::gateway;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using octavo::testing::eventually;
using octavo::testing::raw_client;
using octavo::testing::raw_response;

namespace {

const std::string long_text(50'000, 'x');

/// Answers every request at once with "A".
class prompt_engine final : public engine_link {
 public:
  void submit(std::vector<request_spec> requests) override {
    auto events = std::make_shared<actors::event_batch>();
    for (request_spec& spec : requests) {
      events->accepted.push_back({spec.id, {}});
      events->text += 'A';
      const auto at = static_cast<std::uint32_t>(events->text.size() - 1);
      events->tokens.push_back({spec.id, {}, 0, 'A', at, 1});
      finish_event end;
      end.request = spec.id;
      end.request_done = true;
      events->finishes.push_back(end);
      const std::lock_guard lock{mutex_};
      submitted_.push_back(std::move(spec));
    }
    door->hear(std::move(events));
  }
  void cancel(request_id) override {}
  void drain() override {}
  void ask_statistics(std::function<void(const actors::statistics_list&)> answer) override {
    answer({});
  }
  void ask_explanation(request_id, std::function<void(std::string)> answer) override { answer({}); }

  [[nodiscard]] std::vector<request_spec> submitted() {
    const std::lock_guard lock{mutex_};
    return submitted_;
  }

  gateway::gateway* door = nullptr;

 private:
  std::mutex mutex_;
  std::vector<request_spec> submitted_;
};

/// A calendar that makes whoever prepares a prompt wait, but for the network thread.
class slow_calendar {
 public:
  std::int64_t read() {
    std::unique_lock lock{mutex_};
    if (std::this_thread::get_id() != network_) {
      ++waiting_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return is_open_; });
    }
    return 0;
  }
  void set_network() {
    const std::lock_guard lock{mutex_};
    network_ = std::this_thread::get_id();
    changed_.notify_all();
  }
  void wait_for_network() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [this] { return network_ != std::thread::id{}; });
  }
  /// Until `count` prompts have begun to be prepared.
  void wait_for(int count) {
    std::unique_lock lock{mutex_};
    REQUIRE(changed_.wait_for(lock, std::chrono::seconds{10}, [&] { return waiting_ >= count; }));
  }
  void open() {
    const std::lock_guard lock{mutex_};
    is_open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread::id network_;
  int waiting_ = 0;
  bool is_open_ = false;
};

served_model byte_model() {
  served_model m;
  m.words = std::make_shared<const model::tokenizer>(model::byte_tokenizer());
  m.limits.served_model_names = {"m"};
  m.limits.max_model_len = token_count{60'000};
  m.limits.kv_capacity = token_count{65'536};
  m.limits.vocab_size = 256;
  model::chat_source plain;
  plain.templates = {{"default", "{% for m in messages %}{{ m.content }}{% endfor %}"}};
  m.chat = std::make_shared<const model::chat_template>(plain);
  return m;
}

struct slow_server {
  slow_server() {
    gateway_options options;
    options.requests_per_client_max = 2;
    const hub_clocks clocks{actors::wall_seconds, [this] {
                              // Names are made before there is a network thread.
                              return door == nullptr ? 0 : calendar.read();
                            }};
    door = std::make_unique<gateway::gateway>(options, byte_model(), engine, clocks,
                                              [](const std::string&) {});
    engine.door = door.get();
    door->start();
    door->post([this] { calendar.set_network(); });
    calendar.wait_for_network();
  }
  ~slow_server() {
    calendar.open();
    door->stop();
    door->join();
  }
  [[nodiscard]] raw_response ask(const std::string& text) const {
    return raw_client(door->port()).ask(text);
  }
  [[nodiscard]] raw_response get(const std::string& path) const {
    return ask("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n");
  }
  [[nodiscard]] bool is_empty() const {
    return eventually([&] { return get("/load").body == R"({"server_load":0})"; });
  }
  /// Whether this client may ask for as much as ever.
  [[nodiscard]] bool has_whole_share() const;

  slow_calendar calendar;
  prompt_engine engine;
  std::unique_ptr<gateway::gateway> door;
};

std::string post(const std::string& path, const json& body) {
  const std::string text = body.dump();
  return "POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(text.size()) +
         "\r\n\r\n" + text;
}

std::string completion(const std::string& prompt) {
  return post("/v1/completions", {{"prompt", prompt}, {"max_tokens", 5}});
}

json create(const std::string& id, const std::string& input) {
  return {{"type", "response.create"}, {"id", id}, {"input", input}};
}

json next_event(raw_client& client) {
  return json::parse(client.read_frame().payload);
}

json event_of_type(raw_client& client, const std::string& type) {
  for (;;) {
    json event = next_event(client);
    if (event["type"] == type) return event;
  }
}

bool slow_server::has_whole_share() const {
  raw_client one(door->port());
  raw_client two(door->port());
  one.send(completion("a"));
  two.send(completion("b"));
  return one.read_response().status == 200 && two.read_response().status == 200;
}

std::string text_of(const request_spec& spec) {
  return {spec.prompt->begin(), spec.prompt->end()};
}

}  // namespace

TEST_CASE("while long prompts are prepared the others are served, and each has its answer") {
  slow_server server;
  const auto [path, body] =
      GENERATE(std::pair{"/v1/completions", json{{"prompt", long_text}}},
               std::pair{"/v1/chat/completions",
                         json{{"messages", {{{"role", "user"}, {"content", long_text}}}}}},
               std::pair{"/v1/responses", json{{"input", long_text}}});
  raw_client slow(server.door->port());
  slow.send(post(path, body));
  server.calendar.wait_for(1);
  CHECK(server.get("/health").status == 200);
  CHECK(server.get("/metrics").status == 200);
  CHECK(server.get("/load").body == R"({"server_load":1})");
  const raw_response quick = server.ask(completion("short"));
  CHECK(quick.status == 200);
  CHECK(json::parse(quick.body)["choices"][0]["text"] == "A");
  server.calendar.open();
  const raw_response answer = slow.read_response();
  CHECK(answer.status == 200);
  CHECK_THAT(answer.head, ContainsSubstring("X-Request-Id"));
  const auto all = server.engine.submitted();
  REQUIRE(all.size() == 2);
  CHECK(text_of(all[0]) == "short");
  CHECK(text_of(all[1]) == long_text);
  CHECK(all[0].id == request_id{1});
  CHECK(all[1].id == request_id{2});
  CHECK(server.has_whole_share());
}

TEST_CASE("long texts are tokenized beside the network thread, short ones on it") {
  slow_server server;
  raw_client slow(server.door->port());
  slow.send(post("/tokenize", {{"prompt", long_text}, {"add_special_tokens", false}}));
  server.calendar.wait_for(1);
  CHECK(json::parse(server.ask(post("/tokenize", {{"prompt", "ab"}})).body)["count"] == 2);
  server.calendar.open();
  const json answer = json::parse(slow.read_response().body);
  CHECK(answer["count"] == long_text.size());
  CHECK(answer["tokens"] == json(std::vector<int>(long_text.size(), 'x')));
  raw_client lost(server.door->port());
  lost.send(post("/tokenize", {{"prompt", long_text}}));
  lost.reset();
  CHECK(server.get("/health").status == 200);
}

TEST_CASE("a long prompt that can never fit is refused as a short one would be") {
  slow_server server;
  server.calendar.open();
  const std::string too_long(70'000, 'x');
  const raw_response refused = server.ask(completion(too_long));
  CHECK(refused.status == 400);
  CHECK(refused.head.find("X-Request-Id") == std::string::npos);
  const json error = json::parse(refused.body)["error"];
  CHECK(error["code"] == "context_length_exceeded");
  CHECK(error["message"] ==
        "the model's context is 60000 tokens; the prompt has 70000 and 5 are "
        "asked for");
  raw_client socket(server.door->port());
  REQUIRE(socket.upgrade("/v1/responses").status == 101);
  socket.send_frame(0x81, create("a", too_long).dump());
  const json event = next_event(socket);
  CHECK(event["type"] == "error");
  CHECK(event["id"] == "a");
  CHECK(event["status"] == 400);
  CHECK(server.is_empty());
  CHECK(server.engine.submitted().empty());
  CHECK(server.has_whole_share());
}

TEST_CASE("a client that leaves while its prompt is prepared ends its request") {
  slow_server server;
  {
    raw_client stream(server.door->port());
    raw_client socket(server.door->port());
    stream.send(completion(long_text));
    REQUIRE(socket.upgrade("/v1/responses").status == 101);
    socket.send_frame(0x81, create("a", long_text).dump());
    server.calendar.wait_for(1);
    REQUIRE(eventually([&] { return server.get("/load").body == R"({"server_load":2})"; }));
    CHECK(server.ask(completion("a")).status == 429);
    stream.reset();
    socket.reset();
  }
  CHECK(server.is_empty());
  CHECK(server.has_whole_share());
  server.calendar.open();
  CHECK(server.ask(completion(long_text)).status == 200);
  CHECK(server.engine.submitted().size() == 3);
}

TEST_CASE("a response that is being prepared has its name, and is cancelled like any other") {
  slow_server server;
  raw_client socket(server.door->port());
  REQUIRE(socket.upgrade("/v1/responses").status == 101);
  socket.send_frame(0x81, create("a", long_text).dump());
  server.calendar.wait_for(1);
  socket.send_frame(0x81, create("a", "short").dump());
  const json taken = next_event(socket);
  CHECK(taken["error"]["code"] == "response_already_in_flight");
  socket.send_frame(0x81, R"({"type":"response.cancel","id":"a"})");
  std::vector<std::string> types;
  do {
    const json event = next_event(socket);
    CHECK(event["id"] == "a");
    CHECK(event["sequence_number"] == types.size());
    types.push_back(event["type"]);
    if (event["type"] == "response.incomplete") CHECK(event["response"]["status"] == "cancelled");
  } while (types.back() != "response.incomplete");
  CHECK(types == std::vector<std::string>{"response.created", "response.in_progress",
                                          "response.output_item.added",
                                          "response.content_part.added",
                                          "response.output_text.done", "response.content_part.done",
                                          "response.output_item.done", "response.incomplete"});
  CHECK(server.is_empty());
  // The name is free again, and what becomes of the old prompt is nobody's.
  socket.send_frame(0x81, create("a", "short").dump());
  CHECK(event_of_type(socket, "response.completed")["id"] == "a");
  server.calendar.open();
  socket.send_frame(0x81, create("b", long_text).dump());
  CHECK(event_of_type(socket, "response.completed")["id"] == "b");
  CHECK(server.engine.submitted().size() == 2);
  CHECK(server.has_whole_share());
}

TEST_CASE("a server that ends, or an engine that fails, ends what is being prepared") {
  const auto [how, status] =
      GENERATE(std::pair{"drain", 503}, std::pair{"stop", 503}, std::pair{"fail", 500});
  slow_server server;
  raw_client whole(server.door->port());
  raw_client socket(server.door->port());
  whole.send(completion(long_text));
  REQUIRE(socket.upgrade("/v1/responses").status == 101);
  socket.send_frame(0x81, create("a", long_text).dump());
  server.calendar.wait_for(1);
  REQUIRE(eventually([&] { return server.get("/load").body == R"({"server_load":2})"; }));
  if (how == std::string{"drain"}) server.door->drain();
  if (how == std::string{"stop"}) server.door->stop();
  if (how == std::string{"fail"}) server.door->engine_failed("lost");
  const raw_response refused = whole.read_response();
  CHECK(refused.status == status);
  CHECK((refused.head.find("Retry-After: 1") != std::string::npos) == (status == 503));
  const json event = next_event(socket);
  CHECK(event["type"] == "error");
  CHECK(event["id"] == "a");
  CHECK(event["status"] == status);
  CHECK(server.engine.submitted().empty());
}

TEST_CASE("texts that are being tokenized are answered before a drained server ends") {
  slow_server server;
  raw_client slow(server.door->port());
  slow.send(post("/tokenize", {{"prompt", long_text}}));
  server.calendar.wait_for(1);
  server.door->drain();
  CHECK(server.get("/ready").status == 503);
  server.calendar.open();
  CHECK(slow.read_response().status == 200);
}
