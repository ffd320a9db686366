// Names of answers: see identities.hpp.
#include "web/gateway/identities.hpp"

#include <charconv>
#include <random>

namespace octavo::gateway {
namespace {

constexpr std::size_t digits = 16;

std::string hexadecimal(std::uint64_t value) {
  char text[digits + 1];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::string_view prefix_of(api::endpoint_kind endpoint) {
  switch (endpoint) {
    case api::endpoint_kind::chat:
      return "chatcmpl-";
    case api::endpoint_kind::completions:
      return "cmpl-";
    case api::endpoint_kind::responses:
      break;
  }
  return "resp_";
}

}  // namespace

identities::identities(const hub_clocks& clocks) : unix_seconds_(clocks.unix_seconds) {
  std::random_device entropy;
  server_ = hexadecimal(std::uint64_t{entropy()} << 32U | entropy());
}

api::answer_identity identities::make(api::endpoint_kind endpoint, request_id first,
                                      const std::string& model) const {
  return {std::string{prefix_of(endpoint)} + server_ + hexadecimal(first.raw()), unix_seconds_(),
          model};
}

std::optional<request_id> identities::request_of(std::string_view answer_id) const {
  const auto at = answer_id.find(server_);
  if (at == std::string_view::npos || answer_id.size() != at + 2 * digits) return std::nullopt;
  const std::string_view number = answer_id.substr(at + digits);
  std::uint64_t value = 0;
  const auto [end, problem] =
      std::from_chars(number.data(), number.data() + number.size(), value, 16);
  if (problem != std::errc{} || end != number.data() + number.size()) return std::nullopt;
  return request_id{value};
}

}  // namespace octavo::gateway
