// What a client wants generated, whichever endpoint it used, and the tokens of it.
//
//   generation_request request = parse_chat(body, limits);
//   const auto prompts = prepare(request, words, &chat, limits, now_s);
//   // one submission for each prompt, each with request.n samples
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/sampling_parameters.hpp"
#include "core/units.hpp"
#include "model/chat/chat_template.hpp"
#include "model/tokenizer/tokenizer.hpp"
#include "web/gateway/api/limits.hpp"

namespace octavo::api {

enum class endpoint_kind : std::uint8_t { chat, completions, responses };

/// Turns for the model's chat template.
struct conversation {
  /// A list of {"role", "content", …} whose contents are strings.
  nlohmann::ordered_json messages;
  /// More names for the template (chat_template_kwargs); an object or null.
  nlohmann::ordered_json variables;
  bool add_generation_prompt = true;

  bool operator==(const conversation&) const = default;
};

/// A text, its tokens, or a conversation.
using prompt_input = std::variant<std::string, std::vector<token_id>, conversation>;

struct generation_request {
  endpoint_kind endpoint = endpoint_kind::chat;
  /// A served name: the one that the client used.
  std::string model;
  /// At least one; exactly one unless the endpoint is completions.
  std::vector<prompt_input> prompts;
  /// Whether texts get the first token that the model wants.
  bool add_special_tokens = true;

  /// How to sample, when to stop, which log-probabilities (`sampling.logprobs`: -1 for
  /// none, else the alternatives for each token).
  sampling_parameters sampling;
  /// Words that may not be generated; prepare() turns them into sampling.bad_token_ids.
  std::vector<std::string> bad_words;
  std::int32_t n = 1;
  /// Tokens to generate for each sample. Nothing: the endpoint's default. 0 only with echo.
  std::optional<std::int64_t> max_tokens;

  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;
  /// The answer begins with the prompt (completions).
  bool echo = false;

  std::int32_t priority = 0;
  /// Keeps this request's cached blocks apart from those of other salts.
  std::string cache_salt;
  std::string user;
  /// Given back in the answer (responses): an object, and a text or null.
  nlohmann::ordered_json metadata = nlohmann::ordered_json::object();
  nlohmann::ordered_json instructions;

  /// Whether only the prompt is wanted: one token is generated and dropped.
  [[nodiscard]] bool only_echoes() const { return max_tokens && *max_tokens == 0; }
  /// Whether log-probabilities of the prompt's tokens are wanted too.
  [[nodiscard]] bool wants_prompt_logprobs() const { return echo && sampling.logprobs >= 0; }
};

/// One prompt, ready to be submitted.
struct prepared_prompt {
  std::shared_ptr<const std::vector<token_id>> tokens;
  /// For each sample; at least 1.
  token_count max_tokens{1};
  /// What an echo says; empty where none is wanted.
  std::string text;
};

/// Bytes of the prompts and of what else prepare() reads, about: what its time grows with.
[[nodiscard]] std::size_t prompt_bytes(const generation_request& request);

/// The tokens of each prompt. Nothing that comes with a conversation becomes a control
/// token; a completion's text may spell them, as with vLLM. `chat` may be null where no
/// prompt is a conversation. `now_s` is for templates that tell the date. Throws api_error
/// (400) where a model has no template or the template refuses, and for texts that no
/// context can hold.
[[nodiscard]] std::vector<std::vector<token_id>> tokenize(const generation_request& request,
                                                          const model::tokenizer& words,
                                                          const model::chat_template* chat,
                                                          const limits& bounds,
                                                          std::optional<std::int64_t> now_s);

/// Refuses (api_error 400) a prompt that is empty, has tokens outside the vocabulary, or
/// can never fit with `request.max_tokens` in the model's length or with one token more in
/// the KV pool; both numbers are in the message. Else the tokens that may be generated.
[[nodiscard]] token_count output_limit(const generation_request& request,
                                       const std::vector<token_id>& prompt, const limits& bounds);

/// tokenize() and output_limit() for each prompt; fills request.sampling.bad_token_ids.
[[nodiscard]] std::vector<prepared_prompt> prepare(generation_request& request,
                                                   const model::tokenizer& words,
                                                   const model::chat_template* chat,
                                                   const limits& bounds,
                                                   std::optional<std::int64_t> now_s);

}  // namespace octavo::api
