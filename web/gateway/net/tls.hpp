// Everything that OpenSSL does here: TLS streams, and the hash of the WebSocket
// handshake. Internal to this folder.
#pragma once

#include <asio/ip/tcp.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "web/gateway/net/transport.hpp"

namespace octavo::net {

/// Certificate and key of a server. TLS 1.2 and 1.3.
class tls_identity {
 public:
  /// Reads PEM files; throws input_error naming the one that cannot be used.
  tls_identity(const std::string& certificate_file, const std::string& key_file);
  ~tls_identity();
  tls_identity(const tls_identity&) = delete;
  tls_identity& operator=(const tls_identity&) = delete;

  /// `scratch` is where bytes arrive, as of make_plain_transport(). SIGPIPE must be ignored.
  [[nodiscard]] std::unique_ptr<transport> wrap(asio::ip::tcp::socket socket,
                                                std::span<char> scratch);

 private:
  struct context;
  std::unique_ptr<context> context_;
};

/// Sec-WebSocket-Accept for a Sec-WebSocket-Key (RFC 6455 §4.2.2).
[[nodiscard]] std::string websocket_accept(std::string_view key);

/// Whether `key` is base64 of 16 bytes.
[[nodiscard]] bool is_websocket_key(std::string_view key);

}  // namespace octavo::net
