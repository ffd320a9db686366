// See api_error.hpp.
#include "web/gateway/api/api_error.hpp"

#include <utility>

#include "web/gateway/api/json_text.hpp"

namespace octavo::api {
namespace {

nlohmann::ordered_json text_or_null(const std::string& text) {
  if (text.empty()) return nullptr;
  return text;
}

}  // namespace

api_error::api_error(int its_status, std::string its_type, std::string its_message,
                     std::string its_param, std::string its_code)
    : status(its_status),
      message(std::move(its_message)),
      type(std::move(its_type)),
      param(std::move(its_param)),
      code(std::move(its_code)) {}

nlohmann::ordered_json api_error::details() const {
  return {{"message", message},
          {"type", type},
          {"param", text_or_null(param)},
          {"code", text_or_null(code)}};
}

std::string api_error::to_json() const {
  return json_text({{"error", details()}});
}

api_error invalid_request(std::string param, std::string message, std::string code) {
  return {400, "invalid_request_error", std::move(message), std::move(param), std::move(code)};
}

api_error unauthenticated(std::string message) {
  return {401, "authentication_error", std::move(message), {}, "invalid_api_key"};
}

api_error not_found(std::string message, std::string param, std::string code) {
  return {404, "not_found_error", std::move(message), std::move(param), std::move(code)};
}

api_error rate_limited(std::string message) {
  return {429, "rate_limit_error", std::move(message), {}, "rate_limit_exceeded"};
}

api_error overloaded(std::string message) {
  return {503, "overloaded_error", std::move(message), {}, "overloaded"};
}

api_error server_error(std::string message) {
  return {500, "server_error", std::move(message), {}, "internal_error"};
}

}  // namespace octavo::api
