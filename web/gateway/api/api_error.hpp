// An error as an OpenAI client reads it: a status and a JSON body that names the field.
//
//   throw invalid_request("max_tokens", "max_tokens is 0; 1 or more is allowed");
#pragma once

#include <exception>
#include <nlohmann/json.hpp>
#include <string>

namespace octavo::api {

struct api_error : std::exception {
  int status = 400;  ///< of HTTP
  std::string message;
  std::string type = "invalid_request_error";
  std::string param;  ///< the field that is to blame; empty: null
  std::string code;   ///< a stable word for programs; empty: null

  api_error() = default;
  api_error(int its_status, std::string its_type, std::string its_message,
            std::string its_param = {}, std::string its_code = {});

  [[nodiscard]] const char* what() const noexcept override { return message.c_str(); }
  /// {"error":{"message","type","param","code"}}, in one line. The message may hold any
  /// bytes: what is not UTF-8 becomes U+FFFD.
  [[nodiscard]] std::string to_json() const;
  /// The object within "error".
  [[nodiscard]] nlohmann::ordered_json details() const;
};

/// 400: a field cannot be used as given.
[[nodiscard]] api_error invalid_request(std::string param, std::string message,
                                        std::string code = {});
/// 401.
[[nodiscard]] api_error unauthenticated(std::string message);
/// 404: a model, request or route that is not there.
[[nodiscard]] api_error not_found(std::string message, std::string param = {},
                                  std::string code = {});
/// 429: this client asks for more than its share.
[[nodiscard]] api_error rate_limited(std::string message);
/// 503: the queue is full, or the server drains.
[[nodiscard]] api_error overloaded(std::string message);
/// 500.
[[nodiscard]] api_error server_error(std::string message);

}  // namespace octavo::api
