// Parses Sec-WebSocket-Extensions and answers it.
#include "web/gateway/net/deflate_offer.hpp"

#include <algorithm>
#include <vector>

#include "web/gateway/net/http.hpp"

namespace octavo::net {
namespace {

constexpr int window_bits_max = 15;
constexpr int window_bits_min = 9;
constexpr int window_bits_small = 12;

/// `text` cut at `separator` where that is not within quotes.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  bool quoted = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (text[i] != separator || quoted) continue;
    parts.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  parts.push_back(trimmed(text.substr(begin)));
  return parts;
}

struct parameter {
  std::string_view name;
  std::optional<std::string_view> value;
};

parameter parameter_of(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos) return {text, std::nullopt};
  auto value = trimmed(text.substr(equals + 1));
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
    value = value.substr(1, value.size() - 2);
  }
  return {trimmed(text.substr(0, equals)), value};
}

/// 8 to 15 in decimal without leading zeros.
std::optional<int> window_bits_of(std::string_view text) {
  if (text.size() == 1 && (text[0] == '8' || text[0] == '9')) return text[0] - '0';
  if (text.size() == 2 && text[0] == '1' && text[1] >= '0' && text[1] <= '5') {
    return 10 + (text[1] - '0');
  }
  return std::nullopt;
}

/// One offer's parameters, each at most once.
struct offer {
  bool server_no_takeover = false;
  bool client_no_takeover = false;
  std::optional<int> server_bits;
  std::optional<int> client_bits;  ///< 15 where named without a value

  bool take(const parameter& p) {
    if (p.name == "server_no_context_takeover") return once(server_no_takeover, p);
    if (p.name == "client_no_context_takeover") return once(client_no_takeover, p);
    if (p.name == "server_max_window_bits") {
      if (server_bits || !p.value) return false;
      server_bits = window_bits_of(*p.value);
      return server_bits.has_value();
    }
    if (p.name == "client_max_window_bits") {
      if (client_bits) return false;
      client_bits = p.value ? window_bits_of(*p.value) : window_bits_max;
      return client_bits.has_value();
    }
    return false;
  }

 private:
  static bool once(bool& flag, const parameter& p) {
    if (flag || p.value) return false;
    flag = true;
    return true;
  }
};

std::optional<offer> offer_of(std::string_view text) {
  const auto parts = split(text, ';');
  if (!equal_ignoring_case(parts.front(), "permessage-deflate")) return std::nullopt;
  offer made;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (!made.take(parameter_of(parts[i]))) return std::nullopt;
  }
  if (made.server_bits && *made.server_bits < window_bits_min) return std::nullopt;
  return made;
}

}  // namespace

std::string deflate_agreement::text() const {
  std::string text = "permessage-deflate";
  if (!server_takeover) text += "; server_no_context_takeover";
  if (!client_takeover) text += "; client_no_context_takeover";
  if (server_window_bits < window_bits_max) {
    text += "; server_max_window_bits=" + std::to_string(server_window_bits);
  }
  if (client_window_bits < window_bits_max) {
    text += "; client_max_window_bits=" + std::to_string(client_window_bits);
  }
  return text;
}

std::optional<deflate_agreement> negotiate_deflate(std::string_view offers, bool takeover) {
  for (const auto text : split(offers, ',')) {
    const auto made = offer_of(text);
    if (!made) continue;
    deflate_agreement agreed;
    agreed.server_takeover = takeover && !made->server_no_takeover;
    agreed.client_takeover = takeover && !made->client_no_takeover;
    agreed.server_window_bits = made->server_bits.value_or(window_bits_max);
    // Only a client that names the parameter can be told a window.
    agreed.client_window_bits = made->client_bits.value_or(window_bits_max);
    if (agreed.server_takeover) {
      agreed.server_window_bits = std::min(agreed.server_window_bits, window_bits_small);
    }
    if (agreed.client_takeover && made->client_bits) {
      agreed.client_window_bits = std::min(agreed.client_window_bits, window_bits_small);
    }
    return agreed;
  }
  return std::nullopt;
}

}  // namespace octavo::net
