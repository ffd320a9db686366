// Who may use the gateway, and how much at once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "web/gateway/net/http.hpp"

namespace octavo::gateway {

/// Whether two texts are equal, in a time that tells nothing of where they differ.
[[nodiscard]] bool equal_in_constant_time(std::string_view a, std::string_view b);

class access_control {
 public:
  access_control(std::vector<std::string> keys, std::vector<std::string> origins,
                 std::int64_t requests_per_client_max);

  /// The client's name for limits: its key, else its address. Throws api_error (401)
  /// without a right key: "Authorization: Bearer KEY", "x-api-key: KEY", or for WebSockets
  /// of browsers a subprotocol "openai-insecure-api-key.KEY".
  [[nodiscard]] std::string client_of(const net::request& asked) const;
  /// Whether a browser page of the request's origin may use the API: one of the same
  /// host, or one that was allowed. Requests without an origin are no page's.
  [[nodiscard]] bool origin_allowed(const net::request& asked) const;
  /// Adds CORS headers where the origin is an allowed one.
  void add_cors(const net::request& asked, net::header_list& headers) const;

  /// Counts a request of a client. Throws api_error (429) above its share.
  void enter(const std::string& client);
  void leave(const std::string& client);

 private:
  std::vector<std::string> keys_;
  std::vector<std::string> origins_;
  std::int64_t requests_max_;
  std::map<std::string, std::int64_t> under_way_;
};

}  // namespace octavo::gateway
