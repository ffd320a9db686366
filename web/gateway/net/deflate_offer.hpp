// What client and server agree on about permessage-deflate (RFC 7692 §7.1), by
// the text of Sec-WebSocket-Extensions alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace octavo::net {

struct deflate_agreement {
  bool server_takeover = false;  ///< our messages refer to earlier ones
  bool client_takeover = false;  ///< theirs do
  int server_window_bits = 15;   ///< our window is 2^bits bytes at most
  int client_window_bits = 15;   ///< theirs
  /// The value of Sec-WebSocket-Extensions that tells the client.
  [[nodiscard]] std::string text() const;
};

/// The first acceptable offer in the header's value, as this server accepts it;
/// nothing where there is none. `takeover`: whether contexts may outlive a
/// message, where the client allows it; then windows are kept small. An offer
/// with an unknown, doubled or malformed parameter, or with a window of 2^8 for
/// us, which zlib cannot write, is passed over.
[[nodiscard]] std::optional<deflate_agreement> negotiate_deflate(std::string_view offers,
                                                                 bool takeover);

}  // namespace octavo::net
