// Responses; see parse.hpp.
#include <array>
#include <utility>

#include "web/gateway/api/common_fields.hpp"
#include "web/gateway/api/json_text.hpp"
#include "web/gateway/api/messages.hpp"
#include "web/gateway/api/parse.hpp"

namespace octavo::api {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::array unsupported{
    neutral_field{"tool_choice", R"(["none", "auto"])"},
    neutral_field{"previous_response_id"},
    neutral_field{"conversation"},
    neutral_field{"prompt"},
    neutral_field{"background", "[false]"},
    neutral_field{"background_options", "[{}]"},
    neutral_field{"access_programs"},
    neutral_field{"image"},
    neutral_field{"reasoning", R"([{}, {"effort": null}, {"effort": "none"}])"},
    neutral_field{"text", R"([{}, {"format": {"type": "text"}},
                              {"format": {"type": "text"}, "verbosity": "medium"}])"},
    neutral_field{"truncation", R"(["disabled"])"},
    neutral_field{"max_tool_calls"},
    neutral_field{"context_management", "[[]]"},
    neutral_field{"generate", "[true]"},
    neutral_field{"enable_response_messages", "[false]"},
    neutral_field{"previous_input_messages"},
    neutral_field{"documents", "[[]]"},
    neutral_field{"chat_template"},
    neutral_field{"continue_final_message", "[false]"},
};

/// Log-probabilities are asked for by `include`; `top_logprobs` alone means nothing.
void read_logprobs(fields& body, const limits& bounds, generation_request& request) {
  constexpr std::string_view logprobs = "message.output_text.logprobs";
  bool wanted = false;
  if (const json* include = body.find("include")) {
    if (!include->is_array()) body.fail_value("include", *include, "a list is allowed");
    for (const json& name : *include) {
      if (name != logprobs) {
        body.fail("include", "has " + shown(name) + ", which is not supported; \"" +
                                 std::string{logprobs} + "\" is");
      }
      wanted = true;
    }
  }
  const auto top = body.integer("top_logprobs", 0, bounds.logprobs_max);
  if (top.value_or(0) > 0 && !wanted) {
    body.fail("top_logprobs", "is only allowed with include: [\"" + std::string{logprobs} + "\"]");
  }
  request.sampling.logprobs = wanted ? static_cast<std::int32_t>(top.value_or(0)) : -1;
}

/// Instructions are a system's message before all others.
conversation read_turns(fields& body, const limits& bounds, generation_request& request) {
  conversation talk;
  const json& input = body.need("input", "a text or a list of messages is expected");
  talk.messages = read_input(input, body.path("input"), bounds);
  if (const auto instructions = body.text("instructions")) {
    request.instructions = *instructions;
    ordered_json turn = {{"role", "system"}, {"content", *instructions}};
    talk.messages.insert(talk.messages.begin(), std::move(turn));
  }
  talk.variables = read_variables(body);
  return talk;
}

}  // namespace

generation_request parse_responses(std::string_view body, const limits& bounds) {
  return parse_responses(parse_object(body), bounds);
}

generation_request parse_responses(const json& document, const limits& bounds) {
  fields body{document, {}};
  generation_request request;
  request.endpoint = endpoint_kind::responses;
  read_common(body, bounds, request);
  if (request.n != 1) body.fail("n", "is not supported; only 1 is allowed");
  read_stream(body, request);
  read_logprobs(body, bounds, request);
  request.max_tokens = body.integer("max_output_tokens", 1, max_tokens_most);
  request.prompts.emplace_back(read_turns(body, bounds, request));
  body.refuse_unsupported(unsupported);
  body.finish();
  check_common(request, bounds);
  return request;
}

}  // namespace octavo::api
