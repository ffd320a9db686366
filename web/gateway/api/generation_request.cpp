// See generation_request.hpp.
#include "web/gateway/api/generation_request.hpp"

#include <algorithm>
#include <string_view>

#include "core/error.hpp"
#include "web/gateway/api/api_error.hpp"
#include "web/gateway/api/json_text.hpp"

namespace octavo::api {
namespace {

constexpr std::int64_t completion_tokens_default = 16;

/// The field that holds prompts.
const char* prompt_field(endpoint_kind endpoint) {
  switch (endpoint) {
    case endpoint_kind::chat:
      return "messages";
    case endpoint_kind::responses:
      return "input";
    case endpoint_kind::completions:
      break;
  }
  return "prompt";
}

[[noreturn]] void refuse_length(const std::string& field, const std::string& message) {
  throw invalid_request(field, message, "context_length_exceeded");
}

void check_bytes(std::size_t bytes, const std::string& field, const limits& bounds) {
  if (bounds.prompt_bytes_max == 0 || bytes <= bounds.prompt_bytes_max) return;
  refuse_length(field, field + " has " + std::to_string(bytes) + " bytes of text; the " +
                           std::to_string(bounds.max_model_len.raw()) +
                           " tokens of the model's context cannot stand for more than " +
                           std::to_string(bounds.prompt_bytes_max));
}

std::size_t bytes_of(const nlohmann::ordered_json& messages) {
  std::size_t bytes = 0;
  for (const auto& message : messages) {
    for (const auto& value : message) {
      if (value.is_string()) bytes += value.get_ref<const std::string&>().size();
    }
  }
  return bytes;
}

// Every value costs something, however little it says. Bodies bound the nesting.
std::size_t bytes_within(const nlohmann::ordered_json& value) {
  if (value.is_string()) return value.get_ref<const std::string&>().size();
  std::size_t bytes = sizeof(token_id);
  if (value.is_structured()) {
    for (const auto& part : value) bytes += bytes_within(part);
  }
  return bytes;
}

std::size_t bytes_of(const prompt_input& prompt) {
  if (const auto* ids = std::get_if<std::vector<token_id>>(&prompt)) {
    return ids->size() * sizeof(token_id);
  }
  if (const auto* text = std::get_if<std::string>(&prompt)) return text->size();
  const auto& talk = std::get<conversation>(prompt);
  return bytes_within(talk.messages) + bytes_within(talk.variables);
}

std::vector<token_id> render(const conversation& talk, const model::tokenizer& words,
                             const model::chat_template* chat, std::optional<std::int64_t> now_s) {
  if (chat == nullptr) throw input_error("the model has no chat template");
  model::chat_options options;
  options.add_generation_prompt = talk.add_generation_prompt;
  options.variables = talk.variables;
  options.now_s = now_s;
  return chat->render(talk.messages, options).tokens(words);
}

std::vector<token_id> tokens_of(const prompt_input& prompt, const generation_request& request,
                                const model::tokenizer& words, const model::chat_template* chat,
                                const limits& bounds, std::optional<std::int64_t> now_s) {
  const std::string field = prompt_field(request.endpoint);
  if (const auto* ids = std::get_if<std::vector<token_id>>(&prompt)) return *ids;
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    check_bytes(text->size(), field, bounds);
    return words.encode(*text, {.add_special = request.add_special_tokens, .parse_special = true});
  }
  const auto& talk = std::get<conversation>(prompt);
  check_bytes(bytes_of(talk.messages), field, bounds);
  return render(talk, words, chat, now_s);
}

std::string text_of(const prompt_input& prompt, const model::tokenizer& words) {
  if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
  const auto* ids = std::get_if<std::vector<token_id>>(&prompt);
  return ids == nullptr ? std::string{} : words.decode_text(*ids, {.skip_special = false});
}

/// The tokens of a word within a text and at its beginning. A word of several tokens cannot
/// be kept out without keeping out its parts.
std::vector<token_id> bad_tokens(const std::string& word, const model::tokenizer& words) {
  const auto begin = std::min(word.find_first_not_of(' '), word.size());
  const std::string bare = word.substr(begin);
  constexpr model::encode_options as_text{.add_special = false, .parse_special = false};
  std::vector<token_id> list;
  const auto alone = words.encode(bare.empty() ? word : bare, as_text);
  if (alone.size() != 1) {
    throw invalid_request("bad_words", "bad_words has " + shown(word) + ", which is " +
                                           std::to_string(alone.size()) +
                                           " tokens; words of one token are allowed");
  }
  list.push_back(alone[0]);
  const auto spaced = words.encode(" " + bare, as_text);
  if (spaced.size() == 1 && spaced[0] != alone[0]) list.push_back(spaced[0]);
  return list;
}

// Rules that together leave no token would be broken by whatever were chosen.
void check_some_token_is_left(const sampling_parameters& s) {
  const auto has = [](const std::vector<token_id>& list, token_id token) {
    return std::ranges::find(list, token) != list.end();
  };
  const bool left = std::ranges::any_of(s.allowed_token_ids, [&](token_id token) {
    const bool stops_early = s.min_tokens > 0 && has(s.stop_token_ids, token);
    return !has(s.bad_token_ids, token) && !stops_early;
  });
  if (left || s.allowed_token_ids.empty()) return;
  throw invalid_request("allowed_token_ids",
                        "allowed_token_ids has only tokens that bad_words keep out, or "
                        "stop_token_ids before min_tokens; at least one other is needed");
}

void check_vocabulary(const generation_request& request, const std::vector<token_id>& prompt,
                      const limits& bounds) {
  const auto outside = std::ranges::find_if(
      prompt, [&](token_id token) { return token < 0 || token >= bounds.vocab_size; });
  if (outside == prompt.end()) return;
  const std::string field = prompt_field(request.endpoint);
  throw invalid_request(field, field + " has the token " + std::to_string(*outside) +
                                   "; token ids from 0 to " +
                                   std::to_string(bounds.vocab_size - 1) + " are allowed");
}

void check_queue_holds(const std::vector<std::vector<token_id>>& prompts,
                       const generation_request& request, const limits& bounds) {
  std::int64_t tokens = 0;
  for (const auto& prompt : prompts) tokens += std::ssize(prompt);
  if (bounds.queued_tokens_max == 0 || tokens <= bounds.queued_tokens_max) return;
  refuse_length(prompt_field(request.endpoint),
                std::to_string(tokens) + " tokens of prompts never fit in the queue; it holds " +
                    std::to_string(bounds.queued_tokens_max) + " (--max-num-queued-tokens)");
}

}  // namespace

std::size_t prompt_bytes(const generation_request& request) {
  std::size_t bytes = 0;
  for (const prompt_input& prompt : request.prompts) bytes += bytes_of(prompt);
  for (const std::string& word : request.bad_words) bytes += word.size();
  return bytes;
}

std::vector<std::vector<token_id>> tokenize(const generation_request& request,
                                            const model::tokenizer& words,
                                            const model::chat_template* chat, const limits& bounds,
                                            std::optional<std::int64_t> now_s) {
  std::vector<std::vector<token_id>> list;
  list.reserve(request.prompts.size());
  const std::string field = prompt_field(request.endpoint);
  for (const prompt_input& prompt : request.prompts) {
    try {
      list.push_back(tokens_of(prompt, request, words, chat, bounds, now_s));
    } catch (const input_error& problem) {
      throw invalid_request(field, field + ": " + problem.what());
    }
  }
  return list;
}

token_count output_limit(const generation_request& request, const std::vector<token_id>& prompt,
                         const limits& bounds) {
  const std::string field = prompt_field(request.endpoint);
  const auto length = std::ssize(prompt);
  if (length == 0)
    throw invalid_request(field, field + " comes to no tokens; at least 1 is needed");
  check_vocabulary(request, prompt, bounds);
  const std::int64_t most = bounds.max_model_len.raw();
  const std::int64_t asked = std::max<std::int64_t>(request.max_tokens.value_or(1), 1);
  if (length + asked > most) {
    refuse_length(field, "the model's context is " + std::to_string(most) +
                             " tokens; the prompt has " + std::to_string(length) + " and " +
                             std::to_string(asked) +
                             (request.max_tokens ? " are asked for" : " at least is generated"));
  }
  const std::int64_t room = bounds.kv_capacity.raw();
  if (length + 1 > room) {
    refuse_length(field, "the prompt has " + std::to_string(length) +
                             " tokens, which with one more do not fit in the KV cache; it holds " +
                             std::to_string(room));
  }
  const bool is_short = request.endpoint == endpoint_kind::completions;
  const std::int64_t usual =
      is_short ? std::min(completion_tokens_default, most - length) : most - length;
  const std::int64_t limit = request.max_tokens ? asked : usual;
  if (request.sampling.min_tokens > limit) {
    throw invalid_request("min_tokens",
                          "min_tokens is " + std::to_string(request.sampling.min_tokens) +
                              "; up to the " + std::to_string(limit) + " that can be generated");
  }
  return token_count{static_cast<token_count::rep>(limit)};
}

std::vector<prepared_prompt> prepare(generation_request& request, const model::tokenizer& words,
                                     const model::chat_template* chat, const limits& bounds,
                                     std::optional<std::int64_t> now_s) {
  request.sampling.bad_token_ids.clear();
  for (const std::string& word : request.bad_words) {
    for (const token_id token : bad_tokens(word, words)) {
      request.sampling.bad_token_ids.push_back(token);
    }
  }
  check_some_token_is_left(request.sampling);
  auto tokenized = tokenize(request, words, chat, bounds, now_s);
  check_queue_holds(tokenized, request, bounds);
  std::vector<prepared_prompt> prompts;
  prompts.reserve(tokenized.size());
  for (auto& tokens : tokenized) {
    prepared_prompt prompt;
    prompt.max_tokens = output_limit(request, tokens, bounds);
    if (request.echo) prompt.text = text_of(request.prompts[prompts.size()], words);
    prompt.tokens = std::make_shared<const std::vector<token_id>>(std::move(tokens));
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

}  // namespace octavo::api
