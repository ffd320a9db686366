// WebSockets over real sockets: what the pure tests of framing cannot see.
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/echo_application.hpp"
#include "tests/support/raw_client.hpp"
#include "web/gateway/net/deflate.hpp"
#include "web/gateway/net/server.hpp"

using namespace octavo;
using namespace octavo::net;
using namespace octavo::testing;
using Catch::Matchers::ContainsSubstring;
using std::chrono::milliseconds;

namespace {

constexpr int text = 0x81;
constexpr int binary = 0x82;
constexpr int deflated_text = 0xc1;
constexpr int close_opcode = 8;
constexpr int ping_opcode = 9;
constexpr int pong_opcode = 10;

struct open_socket {
  explicit open_socket(server& of, const std::string& headers = {}) : client(of.port()) {
    answer = client.upgrade("/", headers);
    REQUIRE(answer.status == 101);
  }
  /// Answers the close that comes next, and returns its code.
  int closed() {
    const auto frame = client.read_frame();
    REQUIRE(frame.opcode == close_opcode);
    client.send_frame(0x88, frame.payload);
    CHECK(client.read_all().empty());
    return frame.close_code();
  }

  raw_client client;
  raw_response answer;
};

}  // namespace

TEST_CASE("messages are echoed, whole or in fragments with pings between") {
  running_echo echo;
  open_socket socket(echo.server);
  auto& client = socket.client;
  client.send_frame(text, "h\xc3\xa9llo");
  CHECK(client.read_frame().payload == "h\xc3\xa9llo");
  client.send_frame(0x02, "one ");
  client.send_frame(0x89, "are you there");
  const auto pong = client.read_frame();
  CHECK(pong.opcode == pong_opcode);
  CHECK(pong.payload == "are you there");
  client.send_frame(0x80, "two");
  const auto joined = client.read_frame();
  CHECK(joined.opcode == 2);
  CHECK(joined.payload == "one two");
  client.send_frame(binary, std::string(3'000'000, 'b'));
  CHECK(client.read_frame().payload.size() == 3'000'000);
}

TEST_CASE("a message right behind the handshake is not lost") {
  running_echo echo;
  raw_client client(echo.server.port());
  client.send(
      "GET / HTTP/1.1\r\nHost: test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n" +
      raw_client::masked_frame(text, "early"));
  CHECK(client.read_response(false).status == 101);
  CHECK(client.read_frame().payload == "early");
}

TEST_CASE("a ping is answered at once within a message of many fragments") {
  running_echo echo;
  open_socket socket(echo.server);
  const std::string piece(16'384, 'p');
  for (int i = 0; i < 512; ++i) {
    socket.client.send_frame(i == 0 ? 0x02 : 0x00, piece);
    if (i % 64 != 0) continue;
    socket.client.send_frame(0x89, std::to_string(i));
    const auto pong = socket.client.read_frame();
    REQUIRE(pong.opcode == pong_opcode);
    REQUIRE(pong.payload == std::to_string(i));
  }
  socket.client.send_frame(0x80, {});
  CHECK(socket.client.read_frame().payload.size() == 512 * piece.size());
}

TEST_CASE("a peer's close is echoed and reported once") {
  running_echo echo;
  open_socket socket(echo.server);
  socket.client.send_frame(0x88,
                           "\x0f\xa1"
                           "bye");
  const auto frame = socket.client.read_frame();
  CHECK(frame.opcode == close_opcode);
  CHECK(frame.close_code() == 4001);
  CHECK(frame.payload.substr(2) == "bye");
  CHECK(socket.client.read_all().empty());
  CHECK(eventually([&] { return echo.counts.sockets_closed == 1; }));
  CHECK(echo.counts.last_close_code == 4001);
}

TEST_CASE("a close by the application goes behind what was sent, and ends even unanswered") {
  server_options options;
  options.close_timeout = milliseconds(50);
  running_echo echo(options);
  open_socket polite(echo.server);
  polite.client.send_frame(text, "last words");
  polite.client.send_frame(text, "close 4002");
  CHECK(polite.client.read_frame().payload == "last words");
  CHECK(polite.closed() == 4002);
  open_socket rude(echo.server);
  rude.client.send_frame(text, "close 4003");
  CHECK(rude.client.read_frame().close_code() == 4003);
  rude.client.send_frame(text, "ignored");
  CHECK(rude.client.read_all().empty());
  CHECK(eventually([&] { return echo.counts.sockets_closed == 2; }));
}

TEST_CASE("faults of the peer are answered with their code") {
  server_options options;
  options.message_bytes_max = 1000;
  running_echo echo(options);
  const std::vector<std::pair<std::string, int>> cases{
      {raw_client::masked_frame(0x83, "a"), 1002},
      {raw_client::masked_frame(0xc1, "a"), 1002},
      {raw_client::masked_frame(0x89, std::string(126, 'a')), 1002},
      {std::string("\x81\x01"
                   "a",
                   3),
       1002},
      {raw_client::masked_frame(0x88, "\x03\xed"), 1002},
      {raw_client::masked_frame(0x88, "a"), 1002},
      {raw_client::masked_frame(text, "\xff"), 1007},
      {raw_client::masked_frame(0x01, std::string(600, 'a')) +
           raw_client::masked_frame(0x80, std::string(600, 'a')),
       1009},
  };
  int closed = 0;
  for (const auto& [bytes, code] : cases) {
    open_socket socket(echo.server);
    socket.client.send(bytes);
    CHECK(socket.closed() == code);
    ++closed;
    CHECK(eventually([&] { return echo.counts.sockets_closed == closed; }));
    CHECK(echo.counts.last_close_code == code);
  }
}

TEST_CASE("a vanished peer is reported as 1006") {
  running_echo echo;
  open_socket ending(echo.server);
  ending.client.close();
  CHECK(eventually([&] { return echo.counts.sockets_closed == 1; }));
  CHECK(echo.counts.last_close_code == 1006);
  open_socket resetting(echo.server);
  resetting.client.reset();
  CHECK(eventually([&] { return echo.counts.sockets_closed == 2; }));
  CHECK(eventually([&] { return echo.server.statistics().websockets == 0; }));
}

TEST_CASE("silence is pinged; an answer keeps the socket, none ends it") {
  server_options options;
  options.ping_interval = milliseconds(20);
  options.pong_timeout = milliseconds(100);
  running_echo echo(options);
  open_socket alive(echo.server);
  for (int i = 0; i < 5; ++i) {
    REQUIRE(alive.client.read_frame().opcode == ping_opcode);
    alive.client.send_frame(0x8a, {});
  }
  alive.client.send_frame(text, "still here");
  auto frame = alive.client.read_frame();
  while (frame.opcode == ping_opcode) {
    alive.client.send_frame(0x8a, {});
    frame = alive.client.read_frame();
  }
  CHECK(frame.payload == "still here");
  open_socket dead(echo.server);
  CHECK(dead.client.read_frame().opcode == ping_opcode);
  CHECK(dead.client.read_all().empty());
  CHECK(eventually([&] { return echo.counts.last_close_code == 1006; }));
}

TEST_CASE("compressed messages are inflated, bounded and checked") {
  server_options options;
  options.message_bytes_max = 100'000;
  for (const bool takeover : {false, true}) {
    options.deflate_takeover = takeover;
    running_echo echo(options);
    const std::string offer =
        "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n";
    deflater packing(takeover ? 12 : 15, takeover);
    inflater unpacking(15, takeover);
    open_socket socket(echo.server, offer);
    CHECK_THAT(socket.answer.head,
               ContainsSubstring("Sec-WebSocket-Extensions: permessage-deflate"));
    for (int i = 0; i < 3; ++i) {
      const std::string message(5000, static_cast<char>('a' + i));
      socket.client.send_frame(deflated_text, packing.compress(message));
      const auto frame = socket.client.read_frame();
      CHECK(frame.rsv1);
      CHECK(frame.payload.size() < 1000);
      std::string content;
      REQUIRE(unpacking.decompress(frame.payload, 100'000, content) == inflater::result::ok);
      CHECK(content == message);
    }
    socket.client.send_frame(deflated_text, packing.compress(std::string(10'000'000, 'x')));
    CHECK(socket.closed() == 1009);
    open_socket garbled(echo.server, offer);
    garbled.client.send_frame(deflated_text, "\xff\xff\xff");
    CHECK(garbled.closed() == 1007);
    open_socket latin(echo.server, offer);
    latin.client.send_frame(deflated_text, deflater(12, false).compress("\xff"));
    CHECK(latin.closed() == 1007);
  }
}

TEST_CASE("upgrades can be refused, and the connection serves on") {
  running_echo echo;
  raw_client client(echo.server.port());
  CHECK(client.upgrade("/forbidden").status == 403);
  CHECK(client.read_exactly(9) == "not here\n");
  CHECK(client.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").body == "hello\n");
  CHECK(client.upgrade("/", "Sec-WebSocket-Protocol: x, echo\r\n").status == 101);
  raw_client old(echo.server.port());
  const auto refused = old.ask(
      "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  CHECK(refused.status == 426);
  CHECK_THAT(refused.head, ContainsSubstring("Sec-WebSocket-Version: 13"));
}

TEST_CASE("an exception of the session closes its socket with 1011") {
  running_echo echo;
  open_socket socket(echo.server);
  socket.client.send_frame(text, "throw");
  CHECK(socket.closed() == 1011);
}

TEST_CASE("a flood that is not read is bounded, then cut") {
  server_options options;
  options.outbox_bytes_max = 100'000;
  options.write_timeout = milliseconds(100);
  running_echo echo(options);
  raw_client client(echo.server.port(), 4096);
  CHECK(client.upgrade().status == 101);
  // Echoes are never read: the server stops reading and then gives up.
  const auto frame = raw_client::masked_frame(binary, std::string(10'000, 'x'));
  for (int i = 0; i < 100'000 && client.send(frame); ++i) {
  }
  CHECK(eventually([&] { return echo.counts.sockets_closed == 1; }));
  CHECK(echo.counts.last_close_code == 1006);
}

TEST_CASE("messages of all connections together are bounded") {
  server_options options;
  options.received_bytes_max = 100'000;
  running_echo echo(options);
  open_socket one(echo.server);
  open_socket two(echo.server);
  one.client.send_frame(0x02, std::string(60'000, 'x'));
  one.client.send_frame(0x89, {});
  CHECK(one.client.read_frame().opcode == pong_opcode);
  two.client.send_frame(0x02, std::string(60'000, 'x'));
  CHECK(two.closed() == 1013);
  one.client.send_frame(0x80, {});
  CHECK(one.client.read_frame().payload.size() == 60'000);
}

TEST_CASE("closing all says goodbye to every socket") {
  running_echo echo;
  open_socket one(echo.server);
  open_socket two(echo.server);
  CHECK(echo.server.statistics().websockets == 2);
  echo.server.stop_accepting();
  echo.server.close_all(1001, "restart");
  CHECK(one.closed() == 1001);
  CHECK(two.closed() == 1001);
  echo.server.join();
  CHECK(echo.counts.sockets_closed == 2);
  CHECK(echo.server.statistics().websockets == 0);
}

TEST_CASE("peers that ignore a close do not hold up the end") {
  server_options options;
  options.close_timeout = milliseconds(50);
  running_echo echo(options);
  open_socket deaf(echo.server);
  echo.server.stop_accepting();
  echo.server.close_all(1001);
  echo.server.join();
  CHECK(echo.counts.sockets_closed == 1);
}
