// What the network server is told once: where to listen, and the bound of
// every buffer and every wait.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace octavo::net {

/// Bounds hold for each connection unless said otherwise.
struct server_options {
  std::string host = "127.0.0.1";  ///< an address or a name; the first that it resolves to
  std::uint16_t port = 0;          ///< 0: any free one, see server::port()
  int backlog = 1024;
  std::string certificate_file;  ///< PEM chain; empty with key_file: no TLS
  std::string key_file;          ///< PEM

  std::size_t connections_max = 16'384;  ///< of the server; further ones wait in the backlog
  std::size_t header_bytes_max = 64 * 1024;
  std::size_t header_count_max = 100;
  std::size_t body_bytes_max = 32 * 1024 * 1024;
  /// A WebSocket message, after reassembly and inflation.
  std::size_t message_bytes_max = 16 * 1024 * 1024;
  /// Bodies and messages that have begun to arrive, of all connections together;
  /// what would exceed it is refused with 503 or 1013.
  std::size_t received_bytes_max = std::size_t{1} << 30U;
  /// Bytes of further requests that wait behind the one being answered; above, the
  /// connection is closed.
  std::size_t pipelined_bytes_max = 256 * 1024;
  /// Bytes not yet taken by the kernel above which an application should hold
  /// back. Reading stops above, and a connection that stays above for
  /// write_timeout is closed.
  std::size_t outbox_bytes_max = 1024 * 1024;
  /// Bytes that would exceed this close the connection at once.
  std::size_t outbox_bytes_hard_max = 64 * 1024 * 1024;

  std::chrono::milliseconds header_timeout{10'000};  ///< first byte (or TLS) to the end of headers
  std::chrono::milliseconds body_timeout{60'000};    ///< end of headers to the end of the body
  std::chrono::milliseconds idle_timeout{75'000};    ///< between requests
  std::chrono::milliseconds write_timeout{20'000};   ///< a write without progress
  std::chrono::milliseconds close_timeout{3'000};    ///< for the peer's part of closing
  /// A WebSocket that was silent for this long is pinged, and taken for dead
  /// when it stays silent for pong_timeout. 0: never.
  std::chrono::milliseconds ping_interval{20'000};
  std::chrono::milliseconds pong_timeout{20'000};

  /// permessage-deflate. With takeover each connection that uses it keeps up to
  /// 60 KiB of zlib state; without, all share one.
  bool deflate_takeover = false;
  std::size_t deflate_bytes_min = 256;  ///< smaller messages go out as they are
};

/// Throws input_error naming the option whose value cannot be used.
void validate(const server_options& options);

}  // namespace octavo::net
