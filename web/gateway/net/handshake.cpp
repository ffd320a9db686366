// Checks and answers the opening of a WebSocket.
#include "web/gateway/net/handshake.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "web/gateway/net/server.hpp"
#include "web/gateway/net/tls.hpp"

namespace octavo::net {

bool is_websocket_upgrade(const request& asked) {
  return asked.headers.has_token("Upgrade", "websocket") &&
         asked.headers.has_token("Connection", "upgrade");
}

std::optional<request_failure> handshake_objection(const request& asked) {
  if (asked.method != "GET" || asked.version_minor < 1) {
    return request_failure{400, "a WebSocket is opened by GET and HTTP/1.1"};
  }
  if (asked.headers.joined("Sec-WebSocket-Version") != "13") {
    return request_failure{426, "of WebSocket versions only 13 is spoken"};
  }
  if (!is_websocket_key(asked.headers.joined("Sec-WebSocket-Key"))) {
    return request_failure{400, "Sec-WebSocket-Key must be base64 of 16 bytes"};
  }
  return std::nullopt;
}

std::vector<std::string> offered_subprotocols(const request& handshake) {
  std::vector<std::string> offered;
  const auto all = handshake.headers.joined("Sec-WebSocket-Protocol");
  std::string_view rest = all;
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    const auto name = trimmed(rest.substr(0, comma));
    if (is_token(name)) offered.emplace_back(name);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  }
  return offered;
}

std::string handshake_answer(const request& asked, const header_list& headers,
                             std::string_view subprotocol, std::string_view extensions) {
  validate_response_headers(headers);
  header_list own{
      {"Upgrade", "websocket"},
      {"Connection", "Upgrade"},
      {"Sec-WebSocket-Accept", websocket_accept(asked.headers.joined("Sec-WebSocket-Key"))}};
  if (!subprotocol.empty()) {
    const auto offered = offered_subprotocols(asked);
    if (std::find(offered.begin(), offered.end(), subprotocol) == offered.end()) {
      throw input_error("subprotocol " + std::string(subprotocol) + " was not offered");
    }
    own.add("Sec-WebSocket-Protocol", std::string(subprotocol));
  }
  if (!extensions.empty()) own.add("Sec-WebSocket-Extensions", std::string(extensions));
  return format_head(101, headers, own);
}

}  // namespace octavo::net
