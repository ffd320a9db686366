// Bodies of requests to typed requests. Every field that OpenAI or vLLM documents is
// known: it is obeyed, or refused by name unless its value asks for nothing. Fields that
// nobody documents are refused too, so that a misspelt one never goes unnoticed.
//
// All of these throw api_error with a status, the field and what is allowed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "web/gateway/api/api_error.hpp"
#include "web/gateway/api/generation_request.hpp"
#include "web/gateway/api/limits.hpp"

namespace octavo::api {

/// Levels of nesting that a body may have.
inline constexpr int body_depth_max = 32;

/// A body as a JSON object: UTF-8, no key twice, bounded nesting.
[[nodiscard]] nlohmann::json parse_object(std::string_view body);

/// POST /v1/chat/completions.
[[nodiscard]] generation_request parse_chat(std::string_view body, const limits& bounds);
/// POST /v1/completions.
[[nodiscard]] generation_request parse_completion(std::string_view body, const limits& bounds);
/// POST /v1/responses.
[[nodiscard]] generation_request parse_responses(std::string_view body, const limits& bounds);
/// The same from an object, such as client_event::body.
[[nodiscard]] generation_request parse_responses(const nlohmann::json& body, const limits& bounds);

/// A message from a client of the WebSocket.
struct client_event {
  enum class kind { create, cancel };
  kind what = kind::create;
  /// The client's name for one response among many on the socket. Empty where not given.
  std::string id;
  /// The field that gave it, which events echo: "id", or OpenAI's "stream_id".
  std::string id_field = "id";
  /// response.create: the fields for parse_responses(). response.cancel: empty.
  nlohmann::json body;
};

/// {"type":"response.create","id"?, …fields of a response} or {"type":"response.cancel",
/// "id"?}, where "stream_id" may stand for "id". The fields of a response are not looked at yet, so
/// that an error in them can be told with the id.
[[nodiscard]] client_event parse_client_event(std::string_view message);

/// The name that the client gave in a message that parse_client_event() refuses, as far as it
/// can be read: the message need not be JSON to its end. Only `id` and `id_field` are set.
[[nodiscard]] client_event name_in_refused(std::string_view message);

/// POST /tokenize: a text or a conversation as the only prompt.
struct tokenize_request {
  generation_request input;
  bool return_token_strs = false;
};
[[nodiscard]] tokenize_request parse_tokenize(std::string_view body, const limits& bounds);

/// POST /detokenize. Tokens are within the vocabulary; there may be none.
struct detokenize_request {
  std::string model;
  std::vector<token_id> tokens;
};
[[nodiscard]] detokenize_request parse_detokenize(std::string_view body, const limits& bounds);

}  // namespace octavo::api
