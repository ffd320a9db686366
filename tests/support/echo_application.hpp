// The smallest application of web/gateway/net, for tests: it answers with what
// it was asked, and holds what a test wants held.
//
//   GET|HEAD /            "hello\n"
//   POST /echo            the body; X-Method, X-Query and X-Remote say the rest
//   GET  /stream?N        N lines of a chunked stream, all at once
//   GET  /hold            begins a stream, writes nothing; a close is counted
//   GET  /wait            no answer; a close is counted
//   GET  /flood?N         N bytes as fast as the outbox drains
//   GET  /drop, /throw    a responder dropped; an exception
//   GET  /inject          a header value with a line break
//   WebSocket             echoes messages; "close CODE" closes, "throw" throws
#pragma once

#include <algorithm>
#include <atomic>
#include <charconv>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "web/gateway/net/server.hpp"

namespace octavo::testing {

/// What a test can see of the application. Written on the network thread.
struct echo_counts {
  std::atomic<int> requests{0};
  std::atomic<int> lost{0};
  std::atomic<int> sockets_opened{0};
  std::atomic<int> sockets_closed{0};
  std::atomic<int> last_close_code{0};
  std::atomic<int> drains{0};
  std::vector<net::responder> held;  ///< network thread only
  std::vector<net::websocket> sockets;
};

class echo_session final : public net::websocket_session {
 public:
  explicit echo_session(echo_counts& counts) : counts_(counts) {}

  void opened(net::websocket socket) override {
    ++counts_.sockets_opened;
    socket_ = socket;
    counts_.sockets.push_back(std::move(socket));
  }
  void text(std::string message) override {
    if (message == "throw") throw std::runtime_error("as asked");
    // Other text may begin so too.
    if (message.starts_with("close ")) {
      std::uint16_t code = 0;
      const char* const end = message.data() + message.size();
      const auto parsed = std::from_chars(message.data() + 6, end, code);
      if (parsed.ec == std::errc{} && parsed.ptr == end) return socket_.close(code, "as asked");
    }
    socket_.send_text(message);
  }
  void binary(std::string message) override { socket_.send_binary(message); }
  void closed(const net::close_event& event) override {
    std::erase_if(counts_.sockets, [](const net::websocket& socket) { return !socket.open(); });
    counts_.last_close_code = event.code;
    ++counts_.sockets_closed;
  }

 private:
  echo_counts& counts_;
  net::websocket socket_;
};

inline std::size_t number_in(const std::string& query) {
  std::size_t number = 0;
  std::from_chars(query.data(), query.data() + query.size(), number);
  return number;
}

/// Writes `left` bytes, holding back whenever 64 KiB wait.
inline void flood(net::responder reply, std::size_t left, echo_counts& counts) {
  constexpr std::size_t piece = 16 * 1024;
  constexpr std::size_t high = 64 * 1024;
  while (left > 0 && reply.open() && reply.pending_bytes() < high) {
    const auto bytes = std::min(left, piece);
    if (!reply.write(std::string(bytes, 'x'))) return;
    left -= bytes;
  }
  if (left == 0) return reply.end();
  reply.on_drain(high / 2, [reply, left, &counts] {
    ++counts.drains;
    flood(reply, left, counts);
  });
}

inline void handle_echo(net::request asked, net::responder reply, echo_counts& counts) {
  ++counts.requests;
  const net::header_list plain{{"Content-Type", "text/plain"}};
  if (asked.path == "/") return reply.send({200, plain, "hello\n"});
  if (asked.path == "/echo") {
    return reply.send({200,
                       {{"Content-Type", "application/octet-stream"},
                        {"X-Method", asked.method},
                        {"X-Query", asked.query},
                        {"X-Remote", asked.remote_address}},
                       std::move(asked.body)});
  }
  if (asked.path == "/stream") {
    reply.begin_stream(200, plain);
    for (std::size_t i = 0; i < number_in(asked.query); ++i) {
      reply.write("line " + std::to_string(i) + "\n");
    }
    return reply.end();
  }
  if (asked.path == "/hold" || asked.path == "/wait") {
    if (asked.path == "/hold") reply.begin_stream(200, plain);
    reply.on_close([&counts] { ++counts.lost; });
    counts.held.push_back(std::move(reply));
    return;
  }
  if (asked.path == "/flood") {
    reply.begin_stream(200, plain);
    reply.on_close([&counts] { ++counts.lost; });
    return flood(reply, number_in(asked.query), counts);
  }
  if (asked.path == "/throw") throw std::runtime_error("as asked");
  if (asked.path == "/drop") return;
  if (asked.path == "/inject") return reply.send({200, {{"X-A", "b\r\nX-Evil: c"}}, {}});
  reply.send({404, plain, "no such path\n"});
}

/// `counts` must outlive the server.
inline net::application echo_application(echo_counts& counts) {
  net::application app;
  app.on_request = [&counts](net::request asked, net::responder reply) {
    handle_echo(std::move(asked), std::move(reply), counts);
  };
  app.on_upgrade = [&counts](const net::request& asked) -> net::upgrade_decision {
    if (asked.path == "/forbidden") return net::response{403, {}, "not here\n"};
    net::websocket_acceptance accepted;
    accepted.session = std::make_unique<echo_session>(counts);
    const auto offered = net::offered_subprotocols(asked);
    if (std::find(offered.begin(), offered.end(), "echo") != offered.end()) {
      accepted.subprotocol = "echo";
    }
    return accepted;
  };
  return app;
}

/// A server of that application, up while the object lives.
struct running_echo {
  explicit running_echo(net::server_options options = {})
      : server(std::move(options), echo_application(counts)) {
    server.start();
  }

  echo_counts counts;
  net::server server;
};

}  // namespace octavo::testing
