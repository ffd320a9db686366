// Chooses a token from logits as the client's parameters ask. The random numbers
// are counter-based: a function of a seed and of how many tokens came before, so
// a request's text does not depend on its company.
//
// Order of effects, as in vLLM: bias and masks, penalties, temperature, min-p,
// top-k, top-p. Greedy (temperature below 1e-5) takes the largest after bias,
// masks and penalties; of equals the smallest id.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/sampling_parameters.hpp"
#include "core/units.hpp"

namespace octavo::model {

/// A uniform number in [0, 1) that depends on nothing but its arguments.
[[nodiscard]] double uniform_at(std::uint64_t seed, std::uint64_t counter);

/// What the choice depends on beside the logits.
struct sampling_state {
  std::span<const token_id> prompt;
  std::span<const token_id> output;
  /// The request's seed, else one that the engine drew for it; samples differ.
  std::uint64_t seed = 0;
  /// Tokens at which generation ends; masked before min_tokens.
  std::span<const token_id> end_tokens;
};

struct sampled_token {
  token_id token = 0;
  /// Natural logarithm of its probability under the raw logits.
  float logprob = 0;
  /// The likeliest under the raw logits, if asked for, likeliest first.
  std::vector<std::pair<token_id, float>> top;
};

/// Reusable scratch; one for each thread.
class sampler {
 public:
  /// `logits` (vocabulary) are changed. Parameters are taken as valid. Where
  /// masks leave nothing, the largest raw logit is taken.
  [[nodiscard]] sampled_token sample(std::span<float> logits, const sampling_parameters& how,
                                     const sampling_state& state);

 private:
  struct candidate {
    float logit;
    token_id token;
  };

  void adjust(std::span<float> logits, const sampling_parameters& how, const sampling_state& state);
  [[nodiscard]] token_id draw_any(std::span<const float> logits, float temperature, float largest,
                                  double uniform);
  [[nodiscard]] token_id draw(std::span<const float> logits, const sampling_parameters& how,
                              double uniform);
  [[nodiscard]] double weigh(const sampling_parameters& how, float temperature, double total);
  void keep_likeliest(std::span<const float> logits, std::size_t count);

  std::vector<candidate> candidates_;
  std::vector<double> weights_;
};

}  // namespace octavo::model
