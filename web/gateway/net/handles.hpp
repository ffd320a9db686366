// What an application holds of a connection: a responder for an HTTP request, a
// websocket for a WebSocket. Handles are values that outlive the connection;
// then every call does nothing. Call them on the network thread only (see
// server::post). They call back from the event loop only, never from inside one
// of their own functions unless said so.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "web/gateway/net/http.hpp"

namespace octavo::net {

class exchange;
class websocket_connection;

/// Answers one request, either by send() or by begin_stream(), write()…, end().
/// Where the last copy is dropped before the answer is complete, the client
/// gets a 500, or a stream is cut.
class responder {
 public:
  responder() = default;
  explicit responder(std::shared_ptr<exchange> of) : exchange_(std::move(of)) {}

  /// The whole response. Throws input_error on a header that cannot be sent.
  void send(response answer);

  /// Status and headers of a response whose body follows in pieces (chunked;
  /// HTTP/1.0: until the connection closes). Throws like send().
  void begin_stream(int status, header_list headers);
  /// False where the client is gone. Pieces written in one turn of the event
  /// loop leave in one packet.
  bool write(std::string_view piece);
  void end();

  /// Closes the connection, whatever was sent.
  void abort();

  /// Calls once with the status that goes out, from inside the function that sends it, or
  /// with 500 where the responder is dropped. Never where the client left before.
  void on_begin(std::function<void(int status)> callback);
  /// Calls once when the connection ends before the answer is complete: the
  /// client vanished, was too slow, or the server closes. Noticed also while
  /// nothing is written, unless the client has sent more than
  /// pipelined_bytes_max behind the request. Never called after send() or end().
  void on_close(std::function<void()> callback);
  /// Calls once as soon as no more than `bytes` wait to be sent. Replaces the
  /// callback of an earlier call.
  void on_drain(std::size_t bytes, std::function<void()> callback);

  /// Bytes accepted here that the kernel has not taken yet.
  [[nodiscard]] std::size_t pending_bytes() const;
  /// Whether the client is there and the answer is not complete.
  [[nodiscard]] bool open() const;

 private:
  std::shared_ptr<exchange> exchange_;
};

/// Sends on one WebSocket.
class websocket {
 public:
  websocket() = default;
  explicit websocket(std::weak_ptr<websocket_connection> of) : connection_(std::move(of)) {}

  /// One text message; must be UTF-8. False where the connection is closing or
  /// gone.
  bool send_text(std::string_view message);
  bool send_binary(std::string_view message);
  /// Starts the close handshake; what was sent before goes out first. `code` is
  /// one that may be sent (1000–1003, 1007–1014, 3000–4999), else 1011 goes out; a
  /// reason is cut to 123 bytes.
  void close(std::uint16_t code, std::string_view reason = {});

  [[nodiscard]] std::size_t pending_bytes() const;
  [[nodiscard]] bool open() const;
  /// As responder::on_drain.
  void on_drain(std::size_t bytes, std::function<void()> callback);

 private:
  std::weak_ptr<websocket_connection> connection_;
};

/// How a WebSocket ended.
struct close_event {
  /// What the peer sent (1005: no code), or what was sent to it for its error
  /// (1002, 1007, 1009), or 1006: it vanished.
  std::uint16_t code = 1006;
  std::string reason;
  bool by_peer = false;  ///< it sent a close frame of its own accord
};

/// An application's end of a WebSocket. The server owns it, calls it on the
/// network thread, and destroys it after closed().
class websocket_session {
 public:
  virtual ~websocket_session() = default;
  /// The handshake is done; `socket` may be kept.
  virtual void opened(websocket socket) = 0;
  /// `message` is valid UTF-8.
  virtual void text(std::string message) = 0;
  virtual void binary(std::string message) = 0;
  /// Called exactly once after opened(), at the first sign of the end: nothing
  /// more arrives, and only a close the server itself began is still under way.
  virtual void closed(const close_event& event) = 0;
};

}  // namespace octavo::net
