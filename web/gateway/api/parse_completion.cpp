// Completions; see parse.hpp.
#include <array>

#include "web/gateway/api/common_fields.hpp"
#include "web/gateway/api/parse.hpp"

namespace octavo::api {
namespace {

using nlohmann::json;

constexpr std::array unsupported{
    neutral_field{"suffix", R"([""])"},
    neutral_field{"prompt_embeds"},
    neutral_field{"response_format", R"([{"type": "text"}])"},
    neutral_field{"tool_choice", R"(["none"])"},
};

constexpr std::string_view prompt_allowed =
    "a text, a list of texts, a list of token ids, or a list of such lists is expected, none of "
    "them empty";

/// One prompt: a text or a list of tokens.
prompt_input read_prompt(const fields& body, const json& value, const std::string& path,
                         const limits& bounds) {
  const bool is_text = value.is_string() && !value.get_ref<const std::string&>().empty();
  if (is_text) return value.get<std::string>();
  if (!value.is_array() || value.empty()) body.fail_value("prompt", value, prompt_allowed);
  const auto most = static_cast<std::size_t>(bounds.max_model_len.raw());
  if (value.size() > most) {
    throw invalid_request(path,
                          path + " has " + std::to_string(value.size()) +
                              " tokens; the model's context is " + std::to_string(most),
                          "context_length_exceeded");
  }
  return read_tokens(value, bounds.vocab_size, path);
}

std::vector<prompt_input> read_prompts(fields& body, const limits& bounds) {
  const json& given = body.need("prompt", prompt_allowed);
  const bool is_list =
      given.is_array() && !given.empty() && (given[0].is_string() || given[0].is_array());
  std::vector<prompt_input> prompts;
  if (!is_list) {
    prompts.push_back(read_prompt(body, given, "prompt", bounds));
    return prompts;
  }
  if (given.size() > static_cast<std::size_t>(bounds.sequences_max)) {
    body.fail_value("prompt", given,
                    "up to " + std::to_string(bounds.sequences_max) + " prompts are allowed");
  }
  for (const json& value : given) {
    const std::string path = "prompt[" + std::to_string(prompts.size()) + "]";
    prompts.push_back(read_prompt(body, value, path, bounds));
  }
  return prompts;
}

}  // namespace

generation_request parse_completion(std::string_view text, const limits& bounds) {
  const json document = parse_object(text);
  fields body{document, {}};
  generation_request request;
  request.endpoint = endpoint_kind::completions;
  read_common(body, bounds, request);
  read_stream(body, request);
  request.prompts = read_prompts(body, bounds);
  request.echo = body.flag("echo", false);
  request.add_special_tokens = body.flag("add_special_tokens", true);
  request.max_tokens = body.integer("max_tokens", request.echo ? 0 : 1, max_tokens_most);
  request.sampling.logprobs =
      static_cast<std::int32_t>(body.integer("logprobs", 0, bounds.logprobs_max).value_or(-1));
  const auto best_of = body.integer("best_of", 1, bounds.samples_max);
  if (best_of && *best_of != request.n) {
    body.fail("best_of", "is not supported; leave it out, or give n, which is " +
                             std::to_string(request.n) + " (it is " + std::to_string(*best_of) +
                             ")");
  }
  body.refuse_unsupported(unsupported);
  body.finish();
  check_common(request, bounds);
  return request;
}

}  // namespace octavo::api
