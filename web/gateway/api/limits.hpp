// What requests are checked against: facts of the served model, bounds of the server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/sampling_parameters.hpp"
#include "core/units.hpp"
#include "model/container/generation_config.hpp"

namespace octavo::api {

struct limits {
  /// Names under which clients may ask for the model. Requests that give none get the first.
  std::vector<std::string> served_model_names;
  /// Prompt and output together.
  token_count max_model_len;
  /// Tokens that the whole KV pool holds. A prompt that fills it can never be answered.
  token_count kv_capacity;
  token_id vocab_size = 0;
  /// Samples of one prompt (n).
  std::int32_t samples_max = 128;
  /// Prompts times samples of one request.
  std::int32_t sequences_max = 1024;
  /// Bytes of text that max_model_len tokens can stand for; 0: any. Longer texts are refused
  /// before they are tokenized.
  std::size_t prompt_bytes_max = 0;
  /// What the queue holds, in prompts and in tokens of prompts; 0: any. A request of more
  /// would be refused for ever, however empty the queue.
  std::int64_t queued_prompts_max = 0;
  std::int64_t queued_tokens_max = 0;
  /// Alternatives reported for a token (--max-logprobs).
  std::int32_t logprobs_max = 20;
  std::int32_t stops_max = 16;
  std::int32_t messages_max = 4096;
  /// Whether the scheduler orders by priority; else only 0 is taken.
  bool allows_priority = false;
  /// Where not empty: why no conversation can become a prompt.
  std::string chat_problem;
  /// What holds where a request says nothing.
  sampling_parameters default_sampling;
};

/// The sampling that a model's makers recommend (--generation-config auto).
[[nodiscard]] sampling_parameters default_sampling(const model::generation_config& config);

}  // namespace octavo::api
