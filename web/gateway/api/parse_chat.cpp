// Chat completions; see parse.hpp.
#include <array>

#include "web/gateway/api/common_fields.hpp"
#include "web/gateway/api/messages.hpp"
#include "web/gateway/api/parse.hpp"

namespace octavo::api {
namespace {

using nlohmann::json;

constexpr std::array unsupported{
    neutral_field{"tool_choice", R"(["none"])"},
    neutral_field{"functions", "[[]]"},
    neutral_field{"function_call", R"(["none"])"},
    neutral_field{"response_format", R"([{"type": "text"}])"},
    neutral_field{"modalities", R"([["text"], []])"},
    neutral_field{"audio"},
    neutral_field{"prediction"},
    neutral_field{"web_search_options"},
    neutral_field{"reasoning_effort", R"(["none"])"},
    neutral_field{"include_reasoning", "[true, false]"},
    neutral_field{"verbosity", R"(["medium"])"},
    neutral_field{"echo", "[false]"},
    neutral_field{"best_of", "[1]"},
    neutral_field{"suffix"},
};

void read_logprobs(fields& body, const limits& bounds, generation_request& request) {
  const bool wanted = body.flag("logprobs", false);
  const auto top = body.integer("top_logprobs", 0, bounds.logprobs_max);
  if (top.value_or(0) > 0 && !wanted) {
    body.fail("top_logprobs", "is only allowed where logprobs is true");
  }
  request.sampling.logprobs = wanted ? static_cast<std::int32_t>(top.value_or(0)) : -1;
}

void read_max_tokens(fields& body, generation_request& request) {
  const auto newer = body.integer("max_completion_tokens", 1, max_tokens_most);
  const auto older = body.integer("max_tokens", 1, max_tokens_most);
  if (newer && older && *newer != *older) {
    body.fail("max_tokens", "differs from max_completion_tokens; give one of them");
  }
  request.max_tokens = newer ? newer : older;
}

}  // namespace

generation_request parse_chat(std::string_view text, const limits& bounds) {
  const json document = parse_object(text);
  fields body{document, {}};
  generation_request request;
  request.endpoint = endpoint_kind::chat;
  read_common(body, bounds, request);
  read_stream(body, request);
  read_logprobs(body, bounds, request);
  read_max_tokens(body, request);
  const json& messages = body.need("messages", "a list of messages is expected");
  request.prompts.emplace_back(read_conversation(body, messages, bounds));
  body.refuse_unsupported(unsupported);
  body.finish();
  check_common(request, bounds);
  return request;
}

}  // namespace octavo::api
