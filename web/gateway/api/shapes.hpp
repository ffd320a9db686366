// Answers in OpenAI's shapes, each as one line of JSON: chat completions, completions and
// the small endpoints. (Responses: response_stream.hpp.)
//
//   chat_stream chunks{identity, {.include_usage = true, .logprobs = false}};
//   send(sse_event(chunks.role(0)));
//   send(sse_event(chunks.content(0, "Hello", {})));
//   send(sse_event(chunks.finish(0, {.reason = "stop"})));
//   send(sse_event(chunks.usage({.prompt_tokens = 9, .completion_tokens = 1})));
//   send(sse_done);
//
// Texts may hold any bytes: what is not UTF-8 becomes U+FFFD. Log-probabilities of −∞,
// which JSON cannot say, become −9999.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"
#include "web/gateway/api/answer_parts.hpp"
#include "web/gateway/api/text_offsets.hpp"

namespace octavo::api {

struct stream_shape {
  /// Chunks carry "usage": null, and a last one with no choices carries the figures.
  bool include_usage = false;
  /// Whether the client asked for log-probabilities.
  bool logprobs = false;
};

/// The chunks of a streamed chat completion. For n > 1: role() for each index first, then
/// in any order content() of each and one finish(); usage() once, last, where included.
/// `so_far` replaces the null usage (continuous_usage_stats).
class chat_stream {
 public:
  chat_stream(const answer_identity& identity, stream_shape shape);

  [[nodiscard]] std::string role(std::int32_t index, const token_usage* so_far = nullptr) const;
  /// `tokens` are those that gave the text; ignored unless log-probabilities are wanted.
  [[nodiscard]] std::string content(std::int32_t index, std::string_view text,
                                    std::span<const token_info> tokens,
                                    const token_usage* so_far = nullptr) const;
  [[nodiscard]] std::string finish(std::int32_t index, const ending& end,
                                   const token_usage* so_far = nullptr) const;
  [[nodiscard]] std::string usage(const token_usage& total) const;

 private:
  [[nodiscard]] std::string chunk(std::int32_t index, std::string_view delta,
                                  std::string_view logprobs, const ending* end,
                                  const token_usage* so_far) const;

  std::string front_;  ///< up to the list of choices
  stream_shape shape_;
};

/// The chunks of a streamed completion, likewise. The index for sample k of prompt p is
/// p·n + k. An echo is the first content of each index.
class completion_stream {
 public:
  completion_stream(const answer_identity& identity, stream_shape shape);

  /// Counts text offsets, so contents of one index must come in order.
  [[nodiscard]] std::string content(std::int32_t index, std::string_view text,
                                    std::span<const token_info> tokens,
                                    const token_usage* so_far = nullptr);
  [[nodiscard]] std::string finish(std::int32_t index, const ending& end,
                                   const token_usage* so_far = nullptr) const;
  [[nodiscard]] std::string usage(const token_usage& total) const;

 private:
  [[nodiscard]] std::string chunk(std::int32_t index, std::string_view text,
                                  std::string_view logprobs, const ending* end,
                                  const token_usage* so_far) const;

  std::string front_;
  stream_shape shape_;
  std::vector<text_offsets> offsets_;  ///< by index
};

/// An answer that is not streamed.
[[nodiscard]] std::string chat_completion(const answer_identity& identity,
                                          std::span<const answered_choice> choices,
                                          const token_usage& total, bool logprobs);
[[nodiscard]] std::string text_completion(const answer_identity& identity,
                                          std::span<const answered_choice> choices,
                                          const token_usage& total, bool logprobs);

/// GET /v1/models.
[[nodiscard]] std::string models_list(std::span<const std::string> names, std::int64_t created_s,
                                      token_count max_model_len);
/// GET /v1/models/{name}.
[[nodiscard]] std::string model_card(std::string_view name, std::int64_t created_s,
                                     token_count max_model_len);
/// POST /tokenize. `texts` are the tokens' bytes where the client wants them, else null.
[[nodiscard]] std::string tokenize_answer(std::span<const token_id> tokens,
                                          token_count max_model_len,
                                          const std::vector<std::string>* texts);
/// POST /detokenize.
[[nodiscard]] std::string detokenize_answer(std::string_view text);
/// GET /version.
[[nodiscard]] std::string version_answer(std::string_view version);

}  // namespace octavo::api
