// The opening of a WebSocket (RFC 6455 §4.2), apart from any connection.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "web/gateway/net/http.hpp"
#include "web/gateway/net/request_parser.hpp"

namespace octavo::net {

/// Whether the request asks for a WebSocket, well-formed or not.
[[nodiscard]] bool is_websocket_upgrade(const request& asked);

/// What is wrong with such a request; nothing where it can be accepted.
[[nodiscard]] std::optional<request_failure> handshake_objection(const request& asked);

/// Status line and headers of the 101. `extensions` and `subprotocol` may be
/// empty. Throws input_error where the subprotocol was not offered or a header
/// cannot be sent.
[[nodiscard]] std::string handshake_answer(const request& asked, const header_list& headers,
                                           std::string_view subprotocol,
                                           std::string_view extensions);

}  // namespace octavo::net
