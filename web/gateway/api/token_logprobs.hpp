// Log-probabilities in the three forms that OpenAI's endpoints use. Internal to this folder.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "web/gateway/api/answer_parts.hpp"
#include "web/gateway/api/text_offsets.hpp"

namespace octavo::api {

/// Chat: {"content": [{token, logprob, bytes, top_logprobs: [{token, logprob, bytes}]}]}. A
/// token that is part of a code point reads U+FFFD; its bytes are the truth.
[[nodiscard]] nlohmann::ordered_json chat_logprobs(std::span<const token_info> tokens);

/// Completions: {tokens, token_logprobs, top_logprobs, text_offset}. Without a field for
/// bytes, a token that is part of a code point reads "bytes:\xe2\x80", as OpenAI has it.
[[nodiscard]] nlohmann::ordered_json completion_logprobs(std::span<const token_info> tokens,
                                                         text_offsets& offsets);

/// Responses: a list of {token, logprob, bytes, top_logprobs}.
[[nodiscard]] nlohmann::ordered_json response_logprobs(std::span<const token_info> tokens);

}  // namespace octavo::api
