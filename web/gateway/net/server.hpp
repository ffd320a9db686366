// An HTTP/1.1 and WebSocket server with one network thread. It knows the wire
// and its limits; what requests mean is the application's.
//
//   net::application app;
//   app.on_request = [](net::request, net::responder reply) { reply.send({200, {}, "hi\n"}); };
//   net::server server{net::server_options{}, std::move(app)};
//   server.start();
//   … server.port() …
//   server.stop_accepting();   // drain: running requests go on
//   server.close_all(1001);
//   server.join();
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "web/gateway/net/handles.hpp"
#include "web/gateway/net/http.hpp"
#include "web/gateway/net/options.hpp"

namespace octavo::net {

/// Accepts an upgrade.
struct websocket_acceptance {
  std::unique_ptr<websocket_session> session;
  std::string subprotocol;  ///< one of those offered; empty: none
  header_list headers;      ///< further ones for the 101
  bool deflate = true;      ///< where the client offers it
};

/// Accepts, or refuses with a response.
using upgrade_decision = std::variant<response, websocket_acceptance>;

/// What the server calls, on the network thread. Exceptions are logged and
/// become a 500 or a close with 1011.
struct application {
  /// Required.
  std::function<void(request, responder)> on_request;
  /// A well-formed WebSocket handshake. Where absent such a request is an
  /// ordinary one.
  std::function<upgrade_decision(const request&)> on_upgrade;
  /// Headers and body of an error that the server itself answers (400, 405, 408,
  /// 413, 417, 426, 431, 500, 501, 503, 505); `message` is a sentence for people. The default
  /// is OpenAI's shape, {"error": {"message", "type", "param", "code"}}.
  std::function<response(int status, std::string_view message)> error_response;
  /// Hears the status of such an error where no request came of it that the application
  /// could have answered. May be absent.
  std::function<void(int status)> on_refusal;
  /// Faults of the server or of the application, one line each; default: none.
  std::function<void(std::string_view line)> log;
};

/// The subprotocols that a handshake offers, in order.
[[nodiscard]] std::vector<std::string> offered_subprotocols(const request& handshake);

struct server_statistics {
  std::uint64_t accepted = 0;
  std::uint64_t connections = 0;  ///< open now
  std::uint64_t websockets = 0;   ///< of those
  std::uint64_t accept_errors = 0;
};

/// Functions may be called from any thread, but start() and join() by the owner
/// only, and join() never by the network thread.
class server {
 public:
  server(server_options options, application app);
  /// As stop_accepting(), close_all(1001), join().
  ~server();
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  /// Binds, listens and starts the thread. Raises the soft limit of open files
  /// to the hard one and ignores SIGPIPE. Throws input_error naming the address
  /// or file that cannot be used.
  void start();
  [[nodiscard]] std::uint16_t port() const;

  /// Runs `work` on the network thread, in order of posting. One post can carry
  /// the tokens of a whole step for all connections. Dropped after join().
  void post(std::function<void()> work);
  /// Runs `work` on the network thread in `delay`; dropped where the server ends
  /// first.
  void after(std::chrono::milliseconds delay, std::function<void()> work);

  /// Stops listening and closes connections between requests; the others close
  /// after the answer under way. WebSockets stay.
  void stop_accepting();
  /// WebSockets get a close frame and close_timeout to answer; requests under way
  /// are cut.
  void close_all(std::uint16_t code, std::string reason = {});
  /// Waits for the last connection, which after close_all() takes close_timeout
  /// and a moment at most, then for the thread.
  void join();

  [[nodiscard]] server_statistics statistics() const;

 private:
  class core;
  std::unique_ptr<core> core_;
};

}  // namespace octavo::net
