// Chooses tokens on the device, so that only their ids cross the bus.
//
// The rules, and the tokens, are those of model/sampling/sampler.hpp. Both compute
// the same float32 logits and weights; what differs is how weights are summed: the
// sampler in float64 one after another, the device in fixed point with 44 fractional
// bits (the likeliest token weighs 1), whose sums do not depend on their order. So the
// two may differ where
//   - a draw, or a top-p limit, falls within about 1e-10 of the boundary between two
//     tokens (weights are rounded from exp in float64; expf may round the other way);
//   - a token whose weight is below 2^-45 would have been drawn;
//   - a logit is +infinity: the device draws among those, the sampler's weights are NaN.
//
// A vocabulary is cut into chunks, a block for each:
//   survey   largest logit, raw and adjusted, and the likeliest of each chunk
//   weigh    rows that draw: sums of weights by chunk, or by bins of the logit where
//            top-k, top-p or min-p cut the order of likelihood
//   collect  the few tokens in the bins that hold a cut or the draw
//   choose   a block for each row: a radix selection among them; log-probabilities
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/runtime/stream.hpp"

namespace octavo::gpu {

inline constexpr int sampling_vocabulary_max = 1 << 19;
inline constexpr int sampling_top_max = 64;

/// A part of the lists of tokens.
struct list_range {
  std::int32_t begin = 0;
  std::int32_t end = 0;
};

/// How a row is sampled; sampling_batch makes these.
struct sampling_row {
  float temperature = 0;  ///< below 1e-5: greedy
  float top_p = 1;
  float min_p = 0;
  std::int32_t top_k = 0;
  float presence_penalty = 0;
  float frequency_penalty = 0;
  float repetition_penalty = 1;
  std::int32_t history = -1;  ///< its slot of the token history; -1: no penalties
  std::uint64_t seed = 0;
  std::uint64_t counter = 0;       ///< tokens that came before
  std::int32_t top_logprobs = -1;  ///< likeliest tokens to report; -1: not even the chosen
  list_range biases;               ///< of sampling_params::biases
  list_range allowed;              ///< of sampling_params::tokens; empty: all
  list_range banned;               ///< of sampling_params::tokens
  std::int32_t unused = 0;
};

struct token_bias {
  std::int32_t token = 0;
  float value = 0;
};

/// All addresses are on the device. Logits stay as they are.
struct sampling_params {
  int rows = 0;
  int vocabulary = 0;                    ///< 1 to sampling_vocabulary_max
  const float* logits = nullptr;         ///< [rows, vocabulary]
  const sampling_row* how = nullptr;     ///< [rows]
  const token_bias* biases = nullptr;    ///< sorted by token within a row's range
  const std::int32_t* tokens = nullptr;  ///< allowed and banned ones
  std::uint32_t* history = nullptr;      ///< [slots, vocabulary], or null
  /// False: all rows are taken as greedy, with two launches less.
  bool any_draws = true;
  int top_max = 0;                     ///< most that a row gets, 0 to sampling_top_max
  std::int32_t* chosen = nullptr;      ///< out: [rows]
  float* logprobs = nullptr;           ///< out: [rows], of the chosen; 0 where not asked for
  std::int32_t* top_tokens = nullptr;  ///< out: [rows, top_max], -1 behind the last
  float* top_logprobs = nullptr;       ///< out: [rows, top_max]
  void* workspace = nullptr;           ///< 16-byte aligned
  std::size_t workspace_bytes = 0;
};

/// What sample() needs for `rows` rows, or fewer.
std::size_t sampling_workspace_bytes(int rows, int vocabulary, int top_max);

/// Chooses a token for each row and counts it in the row's history. Rows of one launch
/// have slots of their own. Throws input_error naming the field that cannot be used.
void sample(const sampling_params& params, stream& s);

// ---- the token history: for each slot and token, in a word ----------------------

/// Set where the prompt holds the token; the other bits count how often it was chosen.
inline constexpr std::uint32_t history_prompt_bit = 0x80000000U;

/// Forgets everything of a slot.
void clear_history(std::uint32_t* history, int vocabulary, int slot, stream& s);

/// Adds `count` tokens (on the device) to a slot, as prompt or as chosen.
void add_history(std::uint32_t* history, int vocabulary, int slot, const std::int32_t* tokens,
                 int count, bool prompt, stream& s);

}  // namespace octavo::gpu
