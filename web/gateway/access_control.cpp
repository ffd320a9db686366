// Keys, origins and shares: see access_control.hpp.
#include "web/gateway/access_control.hpp"

#include <algorithm>
#include <utility>

#include "web/gateway/api/api_error.hpp"
#include "web/gateway/net/server.hpp"

namespace octavo::gateway {
namespace {

constexpr std::string_view key_subprotocol = "openai-insecure-api-key.";

// Whatever the client says is its key; empty where it says nothing.
std::string given_key(const net::request& asked) {
  if (const auto header = asked.headers.find("Authorization")) {
    constexpr std::string_view scheme = "Bearer ";
    if (header->size() > scheme.size() &&
        net::equal_ignoring_case(header->substr(0, scheme.size()), scheme)) {
      return std::string{net::trimmed(header->substr(scheme.size()))};
    }
    return {};
  }
  if (const auto header = asked.headers.find("x-api-key")) return std::string{*header};
  for (const std::string& offered : net::offered_subprotocols(asked)) {
    if (offered.starts_with(key_subprotocol)) return offered.substr(key_subprotocol.size());
  }
  return {};
}

std::string address_of(const net::request& asked) {
  return asked.remote_address.substr(0, asked.remote_address.rfind(':'));
}

// "https://host:port" to "host:port".
std::string_view host_of(std::string_view origin) {
  const auto at = origin.find("://");
  return at == std::string_view::npos ? origin : origin.substr(at + 3);
}

}  // namespace

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  std::size_t difference = a.size() ^ b.size();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const char other = b.empty() ? '\0' : b[i % b.size()];
    difference |= static_cast<std::size_t>(static_cast<unsigned char>(a[i] ^ other));
  }
  return difference == 0;
}

access_control::access_control(std::vector<std::string> keys, std::vector<std::string> origins,
                               std::int64_t requests_per_client_max)
    : keys_(std::move(keys)),
      origins_(std::move(origins)),
      requests_max_(requests_per_client_max) {}

std::string access_control::client_of(const net::request& asked) const {
  if (keys_.empty()) return address_of(asked);
  const std::string key = given_key(asked);
  bool known = false;
  // An empty key is none, whatever is configured.
  for (const std::string& right : keys_) known = equal_in_constant_time(key, right) || known;
  if (!known || key.empty()) {
    throw api::unauthenticated(key.empty() ? "an API key is needed: Authorization: Bearer KEY"
                                           : "the API key is not one that is known here");
  }
  return key;
}

bool access_control::origin_allowed(const net::request& asked) const {
  const auto origin = asked.headers.find("Origin");
  if (!origin) return true;
  const auto host = asked.headers.find("Host");
  if (host && net::equal_ignoring_case(host_of(*origin), *host)) return true;
  return std::ranges::any_of(origins_, [&](const std::string& allowed) {
    return allowed == "*" || net::equal_ignoring_case(allowed, *origin);
  });
}

void access_control::add_cors(const net::request& asked, net::header_list& headers) const {
  const auto origin = asked.headers.find("Origin");
  if (!origin || origins_.empty() || !origin_allowed(asked)) return;
  headers.set("Access-Control-Allow-Origin", std::string{*origin});
  headers.set("Vary", "Origin");
  headers.set("Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
  if (asked.method != "OPTIONS") return;
  headers.set("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
  headers.set("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Api-Key");
  headers.set("Access-Control-Max-Age", "600");
}

void access_control::enter(const std::string& client) {
  std::int64_t& count = under_way_[client];
  if (requests_max_ > 0 && count >= requests_max_) {
    throw api::rate_limited("this client has " + std::to_string(count) + " requests under way; " +
                            std::to_string(requests_max_) + " are allowed at once");
  }
  ++count;
}

void access_control::leave(const std::string& client) {
  const auto found = under_way_.find(client);
  if (found != under_way_.end() && --found->second <= 0) under_way_.erase(found);
}

}  // namespace octavo::gateway
