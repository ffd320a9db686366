// Bodies, tokenizing and events of the socket; see parse.hpp.
#include "web/gateway/api/parse.hpp"

#include <utility>

#include "core/error.hpp"
#include "model/strict_json.hpp"
#include "web/gateway/api/common_fields.hpp"
#include "web/gateway/api/json_text.hpp"
#include "web/gateway/api/messages.hpp"

namespace octavo::api {
namespace {

using nlohmann::json;

/// More than any model's length would only cost memory.
constexpr std::size_t detokenize_tokens_max = std::size_t{1} << 20;
constexpr std::size_t id_bytes_max = 128;

void read_id(fields& event, client_event& result) {
  for (const char* name : {"id", "stream_id"}) {
    const auto id = event.text(name);
    if (!id) continue;
    if (!result.id.empty()) event.fail(name, "is given beside id; one of them is allowed");
    if (id->empty() || id->size() > id_bytes_max) {
      event.fail(name, "has " + std::to_string(id->size()) + " bytes; 1 to " +
                           std::to_string(id_bytes_max) + " are allowed");
    }
    result.id = *id;
    result.id_field = name;
  }
}

}  // namespace

json parse_object(std::string_view body) {
  json document;
  try {
    document = model::parse_strict_json(body, "the body", body_depth_max);
  } catch (const input_error& problem) {
    throw invalid_request({}, problem.what(), "invalid_json");
  }
  if (!document.is_object()) {
    throw invalid_request({}, "the body is " + shown(document) + "; a JSON object is expected",
                          "invalid_json");
  }
  return document;
}

client_event parse_client_event(std::string_view message) {
  json body = parse_object(message);
  client_event result;
  fields event{body, {}};
  constexpr std::string_view allowed = "\"response.create\" or \"response.cancel\" is allowed";
  const json type = event.need("type", allowed);
  read_id(event, result);
  if (type == "response.cancel") {
    result.what = client_event::kind::cancel;
    event.finish();
    return result;
  }
  if (type != "response.create") event.fail_value("type", type, allowed);
  body.erase("type");
  body.erase("id");
  body.erase("stream_id");
  result.body = std::move(body);
  return result;
}

client_event name_in_refused(std::string_view message) {
  client_event found;
  std::string key;
  const auto look = [&](int depth, json::parse_event_t event, const json& parsed) {
    if (depth == 1 && event == json::parse_event_t::key) key = parsed.get<std::string>();
    const bool is_name = depth == 1 && event == json::parse_event_t::value && found.id.empty() &&
                         (key == "id" || key == "stream_id") && parsed.is_string();
    if (is_name && parsed.get_ref<const std::string&>().size() <= id_bytes_max) {
      found.id = parsed.get<std::string>();
      found.id_field = key;
    }
    return depth <= 1;  // what lies deeper is not kept
  };
  [[maybe_unused]] const json rest = json::parse(message, look, false);
  return found;
}

tokenize_request parse_tokenize(std::string_view text, const limits& bounds) {
  const json document = parse_object(text);
  fields body{document, {}};
  tokenize_request result;
  generation_request& input = result.input;
  input.model = read_model(body, bounds);
  const json* prompt = body.find("prompt");
  const json* messages = body.find("messages");
  if ((prompt == nullptr) == (messages == nullptr)) {
    body.fail(prompt == nullptr ? "prompt" : "messages",
              "is wrong here: one of prompt and messages is expected");
  }
  if (prompt != nullptr) {
    if (!prompt->is_string()) body.fail_value("prompt", *prompt, "a string is allowed");
    input.endpoint = endpoint_kind::completions;
    input.prompts.emplace_back(prompt->get<std::string>());
    input.add_special_tokens = body.flag("add_special_tokens", true);
  } else {
    input.prompts.emplace_back(read_conversation(body, *messages, bounds));
  }
  result.return_token_strs = body.flag("return_token_strs", false);
  body.finish();
  return result;
}

detokenize_request parse_detokenize(std::string_view text, const limits& bounds) {
  const json document = parse_object(text);
  fields body{document, {}};
  detokenize_request result;
  result.model = read_model(body, bounds);
  (void)body.need("tokens", "a list of token ids is expected");
  result.tokens = body.tokens("tokens", bounds.vocab_size, detokenize_tokens_max);
  body.finish();
  return result;
}

}  // namespace octavo::api
