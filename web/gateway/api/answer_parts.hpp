// What answers are made of, whichever endpoint gives them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/units.hpp"

namespace octavo::api {

/// What every chunk of an answer repeats.
struct answer_identity {
  std::string id;              ///< "chatcmpl-…", "cmpl-…", "resp_…"
  std::int64_t created_s = 0;  ///< since 1970-01-01 00:00 UTC
  std::string model;
};

/// A token that could have been chosen.
struct alternative {
  token_id id = 0;
  std::string bytes;  ///< what it stands for; need not be UTF-8
  float logprob = 0;  ///< natural logarithm; may be −∞
};

/// A token of the answer, or of the prompt where that is echoed.
struct token_info {
  token_id id = 0;
  std::string bytes;
  /// Nothing for the first token of a prompt, which nothing predicts.
  std::optional<float> logprob;
  /// Likeliest first.
  std::vector<alternative> top;
  /// Whether the answer's text has it; control tokens are left out of texts.
  bool in_text = true;
};

struct token_usage {
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
  /// Of the prompt's: those whose KV was in the prefix cache.
  std::int64_t cached_tokens = 0;
};

/// How one sample ended.
struct ending {
  /// "stop" or "length"; "abort" where the client cancelled, "error" where the engine failed.
  std::string reason = "stop";
  /// The stop string, or the stop token, if one of those ended it.
  std::variant<std::monostate, std::string, token_id> stop_reason;
};

/// Milliseconds since the request arrived.
struct answer_timings {
  double queue_ms = 0;  ///< until it was first scheduled
  double ttft_ms = 0;   ///< until its first token
  double total_ms = 0;
};

/// One sample, complete.
struct answered_choice {
  std::int32_t index = 0;
  std::string text;
  /// Where log-probabilities were asked for: the tokens of the text.
  std::vector<token_info> tokens;
  ending end;
};

}  // namespace octavo::api
