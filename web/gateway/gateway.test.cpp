// The whole endpoint in front of a whole engine, asked over the network: what is counted,
// what a malformed event gets, and how everything ends when the executor dies.
#include "web/gateway/gateway.hpp"

#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

#include "actors/engine_actor.hpp"
#include "actors/executor_actor.hpp"
#include "actors/replica.hpp"
#include "actors/wall_clock.hpp"
#include "model/tokenizer/byte_tokenizer.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/raw_client.hpp"
#include "traces/reader.hpp"
#include "traces/temp_file.hpp"
#include "web/gateway/actor_link.hpp"

using namespace octavo;
using namespace octavo::gateway;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using octavo::testing::eventually;
using octavo::testing::raw_client;
using octavo::testing::raw_response;

namespace {

/// What a test does to an executor.
struct fate {
  std::atomic<bool> dies{false};
  std::atomic<bool> hangs{false};
};

/// Says "A" without end, a token in a millisecond, until it is told to hang or to die.
class mortal_executor final : public executor {
 public:
  explicit mortal_executor(const fate& of) : fate_(of) {}
  [[nodiscard]] executor_capabilities capabilities() const override { return {}; }
  void submit(step_ptr plan) override { plan_ = std::move(plan); }
  step_ptr await() override {
    if (fate_.dies) throw std::runtime_error("the device is lost");
    do {
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    } while (fate_.hangs);
    step_result& result = plan_->result;
    for (const sequence_work& work : plan_->work) {
      for (std::uint16_t k = 0; k < work.samples; ++k) {
        result.tokens.push_back('A');
        result.text += 'A';
        result.text_ends.push_back(static_cast<std::uint32_t>(result.text.size()));
      }
    }
    return std::move(plan_);
  }

 private:
  const fate& fate_;
  step_ptr plan_;
};

engine_config small_engine() {
  engine_config config;
  config.num_blocks = block_count{4096};
  config.max_model_len = token_count{60'000};
  config.max_num_seqs = 8;
  config.max_num_queued_reqs = 1;
  return config;
}

served_model model_of(const engine_config& config) {
  served_model m;
  m.words = std::make_shared<const model::tokenizer>(model::byte_tokenizer());
  m.limits.served_model_names = {"m"};
  m.limits.max_model_len = config.max_model_len;
  m.limits.kv_capacity = token_count{65'536};
  m.limits.vocab_size = 256;
  model::chat_source plain;
  plain.templates = {{"default", "{% for m in messages %}{{ m.content }}{% endfor %}"}};
  m.chat = std::make_shared<const model::chat_template>(plain);
  return m;
}

/// A server on a free port, from spawn to the last actor.
struct whole_server {
  explicit whole_server(engine_config config = small_engine(), const std::string& trace = {}) {
    const auto device = system.spawn<actors::executor_shell, caf::detached>(
        std::make_unique<mortal_executor>(executor));
    actors::scheduler_setup setup;
    setup.config = config;
    setup.clock = actors::engine_clock{system.clock().now()};
    setup.log = std::make_shared<decision_log>(to_json(config));
    setup.log->disable();
    setup.observers = {&waiting};
    ring = actors::spawn_replica(system, std::move(setup), device);
    engine = system.spawn<actors::engine_shell>(router_kind::round_robin,
                                                std::vector{ring.scheduler}, nullptr);
    const auto address = [](const auto& of) { return caf::actor_cast<caf::actor_addr>(of); };
    link = std::make_unique<actor_link>(
        system, engine,
        std::vector{address(ring.executor), address(ring.blocks), address(ring.prefixes),
                    address(ring.scheduler), address(engine)},
        link_ears{[this](actors::event_batch_ptr events) { door->hear(std::move(events)); },
                  [this](std::function<void()> work) { door->post(std::move(work)); },
                  [this](std::string why) { door->engine_failed(std::move(why)); }});
    gateway_options options;
    options.record_trace = trace;
    options.waiting = &waiting;
    options.progress_deadline = std::chrono::milliseconds{500};
    door = std::make_unique<gateway::gateway>(
        options, model_of(config), *link,
        hub_clocks{actors::wall_seconds, [] { return std::int64_t{std::time(nullptr)}; }},
        [](const std::string&) {});
    door->start();
  }
  ~whole_server() {
    door->stop();
    door->join();
    caf::anon_send_exit(engine, caf::exit_reason::user_shutdown);
    engine = nullptr;
    actors::stop_replica(ring);
    ring = {};
    link.reset();
    system.await_all_actors_done();
  }

  [[nodiscard]] std::uint16_t port() const { return door->port(); }
  [[nodiscard]] raw_response get(const std::string& path) const {
    return raw_client(port()).ask("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n");
  }
  [[nodiscard]] std::string metrics() const { return get("/metrics").body; }

  fate executor;
  waiting_reasons waiting;
  caf::actor_system_config caf_config;
  caf::actor_system system{caf_config};
  actors::replica ring;
  actors::engine_actor engine;
  std::unique_ptr<actor_link> link;
  std::unique_ptr<gateway::gateway> door;
};

std::string post(const std::string& path, const std::string& body) {
  return "POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n" +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string endless(const std::string& more = {}) {
  return post("/v1/completions", R"({"prompt":"Hi","max_tokens":50000)" + more + "}");
}

/// Opens a socket and sends one message.
void open_socket(raw_client& client, const std::string& message) {
  REQUIRE(client.upgrade("/v1/responses").status == 101);
  client.send_frame(0x81, message);
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

}  // namespace

TEST_CASE("when the executor dies, every client hears of an error, and health says so") {
  const traces::temp_file trace;
  engine_config config = small_engine();
  config.max_num_queued_reqs = 3;
  {
    whole_server server{config, trace.path()};
    REQUIRE(server.get("/health").status == 200);
    raw_client stream(server.port());
    raw_client whole(server.port());
    raw_client socket(server.port());
    stream.send(endless(R"(,"stream":true)"));
    whole.send(endless());
    open_socket(socket, R"({"type":"response.create","id":"a","input":"Hi"})");
    stream.read_until("\"text\":\"A");
    event_of_type(socket, "response.output_text.delta");
    server.executor.dies = true;
    const std::string rest = stream.read_until("0\r\n\r\n");
    CHECK_THAT(rest, ContainsSubstring("data: {\"error\":{\"message\":"));
    CHECK_THAT(rest, ContainsSubstring("data: [DONE]\n\n"));
    const json failed = event_of_type(socket, "response.failed");
    CHECK(failed["id"] == "a");
    CHECK(failed["response"]["status"] == "failed");
    const raw_response refused = whole.read_response();
    CHECK(refused.status == 500);
    CHECK(json::parse(refused.body)["error"]["type"] == "server_error");
    CHECK(eventually([&] { return server.get("/health").status == 503; }));
    // Who comes now is refused at once, and on the open socket too.
    CHECK(server.get("/ready").status == 500);
    CHECK(raw_client(server.port()).ask(endless()).status == 500);
    socket.send_frame(0x81, R"({"type":"response.create","id":"b","input":"Hi"})");
    const json late = event_of_type(socket, "error");
    CHECK(late["id"] == "b");
    CHECK(late["status"] == 500);
    CHECK_THAT(server.metrics(),
               ContainsSubstring("request_success_total{engine=\"0\","
                                 "finished_reason=\"error\",model_name=\"m\"} 3"));
  }
  // Nobody cancelled them.
  const traces::trace recorded = traces::read_trace(trace.path());
  REQUIRE(recorded.requests.size() == 3);
  for (const traces::request& one : recorded.requests) CHECK(one.cancel < micros{0});
}

TEST_CASE("answers are counted by the status that went out, whenever that is known") {
  engine_config config = small_engine();
  config.max_num_seqs = 1;
  whole_server server{config};
  const auto count = [&](const std::string& handler, const std::string& method,
                         const std::string& status) {
    const std::string text = server.metrics();
    const std::string name = "http_requests_total{handler=\"" + handler + "\",method=\"" + method +
                             "\",status=\"" + status + "\"} ";
    const auto at = text.find(name);
    return at == std::string::npos ? 0 : std::atoi(text.c_str() + at + name.size());
  };
  raw_client running(server.port());
  running.send(endless(R"(,"stream":true)"));
  running.read_until("\"text\":\"A");
  CHECK(count("/v1/completions", "POST", "2xx") == 1);
  // One waits, unanswered; for the next the queue is full, which only the engine knows.
  raw_client waiting(server.port());
  waiting.send(endless());
  CHECK(eventually([&] {
    return server.metrics().find(
               "num_requests_waiting_by_reason{engine=\"0\",model_name=\"m\","
               "reason=\"batch_full\"} 1") != std::string::npos;
  }));
  CHECK(count("/v1/completions", "POST", "2xx") == 1);
  CHECK(raw_client(server.port()).ask(endless()).status == 503);
  CHECK(count("/v1/completions", "POST", "5xx") == 1);
  CHECK(server.get("/v1/requests/none/explain").status == 404);
  CHECK(count("/v1/requests/*/explain", "GET", "4xx") == 1);
  CHECK(raw_client(server.port()).ask("GET / HTTP/1.1\r\n\r\n").status == 400);
  CHECK(count("none", "none", "4xx") == 1);
  // Who leaves before an answer began was not answered.
  waiting.reset();
  CHECK(eventually([&] {
    return server.metrics().find("num_requests_waiting{engine=\"0\",model_name=\"m\"} 0") !=
           std::string::npos;
  }));
  CHECK(count("/v1/completions", "POST", "2xx") == 1);
  CHECK(count("/v1/completions", "POST", "5xx") == 1);
}

TEST_CASE("an error about a malformed event carries the client's name for it") {
  whole_server server;
  raw_client socket(server.port());
  open_socket(socket, R"({"id":"mine","type":"response.create","input":)");
  json error = next_event(socket);
  CHECK(error["type"] == "error");
  CHECK(error["id"] == "mine");
  socket.send_frame(0x81, R"({"stream_id":"s","type":"response.destroy"})");
  error = next_event(socket);
  CHECK(error["stream_id"] == "s");
  CHECK(error["status"] == 400);
  socket.send_frame(0x81, "nothing");
  CHECK_FALSE(next_event(socket).contains("id"));
}

TEST_CASE("whatever name a client gives, a response without one does not take its place") {
  engine_config config = small_engine();
  config.max_num_queued_reqs = 3;
  whole_server server{config};
  {
    raw_client socket(server.port());
    const std::string tail = R"("type":"response.create","input":"Hi","max_output_tokens":50000})";
    open_socket(socket, R"({"id":"\n0",)" + tail);
    event_of_type(socket, "response.output_text.delta");
    socket.send_frame(0x81, R"({"id":"0",)" + tail);
    socket.send_frame(0x81, "{" + tail);
    for (int created = 0; created < 2; ++created) event_of_type(socket, "response.created");
  }
  CHECK(eventually([&] { return server.get("/load").body == R"({"server_load":0})"; }));
}

TEST_CASE("a client that has said all is answered, and a generation without a reader ends") {
  whole_server server;
  raw_client asks(server.port());
  asks.send("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
  asks.half_close();
  CHECK_THAT(asks.read_all(), ContainsSubstring("200 OK") && ContainsSubstring("num_requests"));
  raw_client generates(server.port());
  generates.send(endless());
  REQUIRE(eventually([&] { return server.get("/load").body == R"({"server_load":1})"; }));
  generates.half_close();
  CHECK(eventually([&] { return server.get("/load").body == R"({"server_load":0})"; }));
}

TEST_CASE("a body in a coding is refused by the coding's name") {
  whole_server server;
  const std::string text = "POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip" +
                           std::string{"\r\nContent-Length: 2\r\n\r\n{}"};
  const raw_response refused = raw_client(server.port()).ask(text);
  CHECK(refused.status == 415);
  CHECK_THAT(refused.body, ContainsSubstring("gzip"));
}

TEST_CASE("health is red while the engine hangs, from a fraction of a second on, and green after") {
  whole_server server;
  raw_client running(server.port());
  running.send(endless(R"(,"stream":true)"));
  running.read_until("\"text\":\"A");
  CHECK(eventually([&] { return server.get("/health").status == 200; }));
  server.executor.hangs = true;
  CHECK(eventually([&] { return server.get("/health").status == 503; }));
  server.executor.hangs = false;
  CHECK(eventually([&] { return server.get("/health").status == 200; }));
}
