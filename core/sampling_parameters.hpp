// How the next token is chosen, as the client asked. Pure data: the scheduler
// carries it, an executor's sampler obeys it.
//
// Names, defaults and meanings follow vLLM's SamplingParams.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/units.hpp"

namespace octavo {

struct sampling_parameters {
  /// Below 1e-5: greedy.
  float temperature = 1;
  /// Only the so many likeliest; 0 or less: all.
  std::int32_t top_k = 0;
  /// Only the likeliest whose probabilities come to this; 1: all.
  float top_p = 1;
  /// Only tokens at least this share as likely as the likeliest.
  float min_p = 0;
  float presence_penalty = 0;
  float frequency_penalty = 0;
  float repetition_penalty = 1;
  /// With a seed the text is the same in any company.
  std::optional<std::int64_t> seed;
  /// Added to logits, by token.
  std::vector<std::pair<token_id, float>> logit_bias;
  /// Where not empty, no other token is chosen.
  std::vector<token_id> allowed_token_ids;
  std::vector<token_id> bad_token_ids;
  /// No end before so many tokens.
  std::int32_t min_tokens = 0;
  bool ignore_eos = false;
  std::vector<token_id> stop_token_ids;
  std::vector<std::string> stop;
  bool include_stop_str_in_output = false;
  bool skip_special_tokens = true;
  /// Log-probabilities to report for each token; -1: none.
  std::int32_t logprobs = -1;
};

}  // namespace octavo
