// HTTP over real sockets: limits, order, vanished clients, and the end.
#include "web/gateway/net/server.hpp"

#include <fcntl.h>
#include <sys/resource.h>

#include <vector>

#include "core/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/echo_application.hpp"
#include "tests/support/raw_client.hpp"

using namespace octavo;
using namespace octavo::net;
using namespace octavo::testing;
using Catch::Matchers::ContainsSubstring;
using std::chrono::milliseconds;

namespace {

std::string get(const std::string& target, const std::string& headers = {}) {
  return "GET " + target + " HTTP/1.1\r\nHost: test\r\n" + headers + "\r\n";
}

std::string post(const std::string& headers, const std::string& body) {
  return "POST /echo HTTP/1.1\r\nHost: test\r\n" + headers + "\r\n" + body;
}

std::string post(const std::string& body) {
  return post("Content-Length: " + std::to_string(body.size()) + "\r\n", body);
}

}  // namespace

TEST_CASE("requests are answered one after another on one connection") {
  running_echo echo;
  raw_client client(echo.server.port());
  CHECK(client.ask(get("/")).body == "hello\n");
  const auto posted =
      client.ask("POST /echo?a=b HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nbytes");
  CHECK(posted.status == 200);
  CHECK(posted.body == "bytes");
  CHECK_THAT(posted.head, ContainsSubstring("X-Method: POST") && ContainsSubstring("X-Query: a=b"));
  CHECK_THAT(posted.head, ContainsSubstring("X-Remote: 127.0.0.1:"));
  CHECK(client.ask(get("/stream?3")).body == "line 0\nline 1\nline 2\n");
  CHECK(client.ask(get("/nowhere")).status == 404);
  CHECK(echo.server.statistics().accepted == 1);
}

TEST_CASE("pipelined requests are answered in order, whatever their kind") {
  running_echo echo;
  raw_client client(echo.server.port());
  std::string all;
  for (int i = 0; i < 200; ++i) all += post(std::to_string(i)) + get("/stream?1");
  client.send(all);
  for (int i = 0; i < 200; ++i) {
    REQUIRE(client.read_response().body == std::to_string(i));
    REQUIRE(client.read_response().body == "line 0\n");
  }
}

TEST_CASE("HEAD has the length but no body, and the next answer follows") {
  running_echo echo;
  raw_client client(echo.server.port());
  client.send("HEAD / HTTP/1.1\r\nHost: test\r\n\r\n");
  CHECK_THAT(client.read_response(false).head, ContainsSubstring("Content-Length: 6"));
  client.send("HEAD /stream?3 HTTP/1.1\r\nHost: test\r\n\r\n");
  client.read_response(false);
  CHECK(client.ask(get("/")).body == "hello\n");
}

TEST_CASE("HTTP/1.0 gets streams up to the end of the connection") {
  running_echo echo;
  raw_client client(echo.server.port());
  client.send("GET /stream?2 HTTP/1.0\r\n\r\n");
  const auto head = client.read_until("\r\n\r\n");
  CHECK_THAT(head, ContainsSubstring("Connection: close"));
  CHECK_THAT(head, !ContainsSubstring("chunked"));
  CHECK(client.read_all() == "line 0\nline 1\n");
}

TEST_CASE("a client that waits for 100 Continue is told to go on") {
  running_echo echo;
  raw_client client(echo.server.port());
  const std::string headers = "Expect: 100-continue\r\nContent-Length: 4\r\n";
  client.send(post(headers, {}));
  CHECK(client.read_until("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  CHECK(client.ask("body").body == "body");
  // One that did not wait is not told.
  CHECK(client.ask(post(headers, "body")).status == 200);
}

TEST_CASE("a body that is too large is refused before it is sent") {
  server_options options;
  options.body_bytes_max = 100;
  running_echo echo(options);
  raw_client client(echo.server.port());
  const auto refused = client.ask(post("Expect: 100-continue\r\nContent-Length: 101\r\n", {}));
  CHECK(refused.status == 413);
  CHECK_THAT(refused.head, ContainsSubstring("Connection: close"));
  CHECK_THAT(refused.body, ContainsSubstring("\"message\"") && ContainsSubstring("100 bytes"));
}

TEST_CASE("the answer to a refused upload survives that the client goes on sending") {
  server_options options;
  options.body_bytes_max = 100;
  running_echo echo(options);
  raw_client client(echo.server.port());
  client.send(post("Content-Length: 3000000\r\n", std::string(3'000'000, 'x')));
  CHECK(client.read_response().status == 413);
}

TEST_CASE("bodies of all connections together are bounded, and given back") {
  server_options options;
  options.received_bytes_max = 100'000;
  running_echo echo(options);
  const std::string half(60'000, 'x');
  const std::string headers = "Content-Length: 120000\r\n";
  {
    raw_client vanishing(echo.server.port());
    vanishing.send(post(headers, half));
    raw_client refused(echo.server.port());
    CHECK(refused.ask(post(headers, half)).status == 503);
  }
  REQUIRE(eventually([&] { return echo.server.statistics().connections == 0; }));
  for (int i = 0; i < 3; ++i) {
    raw_client client(echo.server.port());
    CHECK(client.ask(post(half)).body == half);
  }
}

TEST_CASE("malformed requests get their status and the connection ends") {
  running_echo echo;
  const std::vector<std::pair<std::string, int>> cases{
      {"nonsense\r\n\r\n", 400},
      {"BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 501},
      {"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 405},
      {"GET / HTTP/9.9\r\nHost: a\r\n\r\n", 505},
      {get("/", "X: " + std::string(70'000, 'a') + "\r\n"), 431},
      {post("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n") + get("/"), 400},
  };
  for (const auto& [bytes, status] : cases) {
    raw_client client(echo.server.port());
    CHECK(client.ask(bytes).status == status);
    CHECK(client.read_all().empty());
  }
  CHECK(echo.counts.requests == 0);
}

TEST_CASE("slow senders are cut off: headers, body, between requests") {
  server_options options;
  options.header_timeout = options.body_timeout = options.idle_timeout = milliseconds(50);
  running_echo echo(options);
  raw_client silent(echo.server.port());
  CHECK(silent.read_all().empty());
  raw_client half(echo.server.port());
  CHECK(half.ask("GET / HT").status == 408);
  raw_client bodiless(echo.server.port());
  CHECK(bodiless.ask(post("Content-Length: 5\r\n", "1234")).status == 408);
  raw_client idle(echo.server.port());
  CHECK(idle.ask(get("/")).status == 200);
  CHECK(idle.read_all().empty());
  // A request under way is not idle.
  raw_client waiting(echo.server.port());
  waiting.send(get("/wait"));
  REQUIRE(eventually([&] { return echo.counts.requests == 2; }));
  std::this_thread::sleep_for(milliseconds(150));
  CHECK(echo.counts.lost == 0);
}

TEST_CASE("a client that vanishes is noticed once, while nothing is written") {
  running_echo echo;
  for (const auto* path : {"/wait", "/hold"}) {
    for (const bool reset : {false, true}) {
      const int lost = echo.counts.lost;
      const int requests = echo.counts.requests;
      raw_client client(echo.server.port());
      client.send(get(path));
      REQUIRE(eventually([&] { return echo.counts.requests == requests + 1; }));
      reset ? client.reset() : client.close();
      CHECK(eventually([&] { return echo.counts.lost == lost + 1; }));
    }
  }
  CHECK(eventually([&] { return echo.server.statistics().connections == 0; }));
  CHECK(echo.counts.lost == 4);
}

TEST_CASE("a client that fills the line behind its request is closed, and its answer ended") {
  running_echo echo;
  raw_client client(echo.server.port());
  client.send(get("/wait"));
  REQUIRE(eventually([&] { return echo.counts.requests == 1; }));
  const std::string more = get("/");
  std::string pile;
  while (pile.size() <= 300 * 1024) pile += more;
  client.send(pile);
  CHECK(eventually([&] { return echo.counts.lost == 1; }));
  CHECK(eventually([&] { return echo.server.statistics().connections == 0; }));
}

TEST_CASE("a stream is written from outside of the handler, many at a time") {
  running_echo echo;
  constexpr int count = 20;
  std::vector<std::unique_ptr<raw_client>> clients;
  for (int i = 0; i < count; ++i) {
    clients.push_back(std::make_unique<raw_client>(echo.server.port()));
    clients.back()->send(get("/hold"));
  }
  REQUIRE(eventually([&] { return echo.counts.requests == count; }));
  for (int step = 0; step < 10; ++step) {
    echo.server.post([&echo, step] {
      for (auto& reply : echo.counts.held) reply.write("token " + std::to_string(step) + ";");
    });
  }
  echo.server.post([&echo] {
    for (auto& reply : echo.counts.held) reply.end();
    echo.counts.held.clear();
  });
  std::string wanted;
  for (int step = 0; step < 10; ++step) wanted += "token " + std::to_string(step) + ";";
  for (auto& client : clients) CHECK(client->read_response().body == wanted);
  CHECK(echo.counts.lost == 0);
}

TEST_CASE("a slow reader holds the writer back, gets all, and others are served") {
  running_echo echo;
  constexpr std::size_t bytes = 30'000'000;
  raw_client slow(echo.server.port(), 4096);
  slow.send(get("/flood?" + std::to_string(bytes)));
  REQUIRE(eventually([&] { return echo.counts.requests == 1; }));
  raw_client other(echo.server.port());
  for (int i = 0; i < 100; ++i) REQUIRE(other.ask(get("/")).status == 200);
  CHECK(slow.read_response().body.size() == bytes);
  CHECK(echo.counts.drains > 0);
}

TEST_CASE("a reader that stops is closed and its writer told") {
  server_options options;
  options.write_timeout = milliseconds(100);
  running_echo echo(options);
  raw_client stuck(echo.server.port(), 4096);
  stuck.send(get("/flood?100000000"));
  CHECK(eventually([&] { return echo.counts.lost == 1; }));
  CHECK(eventually([&] { return echo.server.statistics().connections == 0; }));
}

TEST_CASE("an outbox beyond its hard bound closes the connection") {
  server_options options;
  options.outbox_bytes_max = 10'000;
  options.outbox_bytes_hard_max = 1'000'000;
  running_echo echo(options);
  raw_client client(echo.server.port());
  client.send(get("/hold"));
  REQUIRE(eventually([&] { return echo.counts.requests == 1; }));
  std::atomic<int> taken{-1};
  echo.server.post([&] {
    auto& reply = echo.counts.held.front();
    taken = reply.write(std::string(900'000, 'x')) ? 1 : 0;
    if (reply.write(std::string(200'000, 'x'))) taken = 2;
  });
  CHECK(eventually([&] { return echo.counts.lost == 1; }));
  CHECK(taken == 1);
}

TEST_CASE("faults of the application become a 500, and the connection lives") {
  running_echo echo;
  raw_client client(echo.server.port());
  for (const auto* path : {"/throw", "/drop", "/inject"}) {
    const auto response = client.ask(get(path));
    CHECK(response.status == 500);
    CHECK_THAT(response.head, !ContainsSubstring("X-Evil"));
  }
  CHECK(client.ask(get("/")).status == 200);
}

TEST_CASE("a stream whose responder is dropped is cut, not ended") {
  running_echo echo;
  raw_client client(echo.server.port());
  client.send(get("/hold"));
  REQUIRE(eventually([&] { return echo.counts.requests == 1; }));
  echo.server.post([&echo] {
    echo.counts.held.front().on_close(nullptr);
    echo.counts.held.clear();
  });
  CHECK_THAT(client.read_all(), !ContainsSubstring("0\r\n\r\n"));
}

TEST_CASE("errors made by the server carry the application's body and headers") {
  echo_counts counts;
  auto app = echo_application(counts);
  app.error_response = [](int status, std::string_view message) {
    return response{status, {{"X-Made-By", "test"}}, "<" + std::string(message) + ">"};
  };
  server made({}, std::move(app));
  made.start();
  raw_client client(made.port());
  const auto refused = client.ask("G\r\n\r\n");
  CHECK_THAT(refused.head, ContainsSubstring("X-Made-By: test"));
  CHECK(refused.body.front() == '<');
}

TEST_CASE("draining lets requests finish and closes what is idle") {
  running_echo echo;
  raw_client idle(echo.server.port());
  CHECK(idle.ask(get("/")).status == 200);
  raw_client busy(echo.server.port());
  busy.send(get("/wait"));
  REQUIRE(eventually([&] { return echo.counts.requests == 2; }));
  echo.server.stop_accepting();
  CHECK(idle.read_all().empty());
  echo.server.post([&echo] {
    echo.counts.held.front().send({200, {}, "late"});
    echo.counts.held.clear();
  });
  const auto late = busy.read_response();
  CHECK(late.body == "late");
  CHECK_THAT(late.head, ContainsSubstring("Connection: close"));
  CHECK(busy.read_all().empty());
  CHECK_THROWS(raw_client(echo.server.port()));
  echo.server.join();
}

TEST_CASE("closing all cuts requests under way and join returns") {
  running_echo echo;
  raw_client busy(echo.server.port());
  busy.send(get("/hold"));
  REQUIRE(eventually([&] { return echo.counts.requests == 1; }));
  echo.server.stop_accepting();
  echo.server.close_all(1001);
  echo.server.join();
  CHECK(echo.counts.lost == 1);
  CHECK(echo.server.statistics().connections == 0);
  CHECK_FALSE(echo.counts.held.front().write("x"));
}

TEST_CASE("timed work runs, and that still waiting is dropped at the end") {
  echo_counts counts;
  std::atomic<int> ran{0};
  {
    server made({}, echo_application(counts));
    made.start();
    made.after(milliseconds(1), [&] { ++ran; });
    made.after(std::chrono::hours(1), [&] { ran = 100; });
    CHECK(eventually([&] { return ran == 1; }));
  }
  CHECK(ran == 1);
}

TEST_CASE("connections beyond the bound wait until there is room") {
  server_options options;
  options.connections_max = 2;
  running_echo echo(options);
  auto first = std::make_unique<raw_client>(echo.server.port());
  raw_client second(echo.server.port());
  CHECK(first->ask(get("/")).status == 200);
  CHECK(second.ask(get("/")).status == 200);
  raw_client third(echo.server.port());
  third.send(get("/"));
  CHECK(echo.server.statistics().connections == 2);
  first.reset();
  CHECK(third.read_response().status == 200);
}

TEST_CASE("running out of files is survived") {
  running_echo echo;
  raw_client before(echo.server.port());
  CHECK(before.ask(get("/")).status == 200);
  rlimit usual{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &usual) == 0);
  auto after = std::make_unique<raw_client>(echo.server.port());
  CHECK(after->ask(get("/")).status == 200);
  // The next file would be the lowest free number: none is allowed from there.
  auto blocked = std::make_unique<raw_client>(echo.server.port());
  CHECK(blocked->ask(get("/")).status == 200);
  rlimit none = usual;
  const int lowest = ::open("/dev/null", O_RDONLY);
  ::close(lowest);
  std::unique_ptr<raw_client> waiting;
  none.rlim_cur = static_cast<rlim_t>(lowest) + 1;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  waiting = std::make_unique<raw_client>(echo.server.port());
  waiting->send(get("/"));
  const bool failed = eventually([&] { return echo.server.statistics().accept_errors > 0; });
  REQUIRE(setrlimit(RLIMIT_NOFILE, &usual) == 0);
  CHECK(failed);
  CHECK(waiting->read_response().status == 200);
  CHECK(before.ask(get("/")).status == 200);
}

TEST_CASE("what cannot be listened on is said") {
  running_echo echo;
  echo_counts counts;
  const auto starting = [&](const server_options& options) {
    server made(options, echo_application(counts));
    made.start();
  };
  server_options taken;
  taken.port = echo.server.port();
  CHECK_THROWS_WITH(starting(taken), ContainsSubstring("cannot listen on 127.0.0.1:"));
  server_options foreign;
  foreign.host = "192.0.2.1";
  CHECK_THROWS_AS(starting(foreign), input_error);
  server_options unreadable;
  unreadable.certificate_file = unreadable.key_file = "/nonexistent.pem";
  CHECK_THROWS_WITH(starting(unreadable), ContainsSubstring("/nonexistent.pem"));
  server_options half;
  half.certificate_file = "/some.pem";
  CHECK_THROWS_WITH(starting(half), ContainsSubstring("both"));
  server_options zero;
  zero.header_timeout = milliseconds(0);
  CHECK_THROWS_WITH(starting(zero), ContainsSubstring("header_timeout"));
}
