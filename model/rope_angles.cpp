// Rotary position embedding: see rope_angles.hpp.
#include "model/rope_angles.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.hpp"

namespace octavo::model {
namespace {

// Frequencies whose wavelength is long are divided by the factor, short ones are
// kept, and between the two the change is linear in context / wavelength.
void scale_llama3(const rope_config& rope, double context, std::vector<double>& frequencies) {
  for (double& frequency : frequencies) {
    const double turns = context * frequency / (2 * std::numbers::pi);
    const double kept = (turns - rope.low_frequency_factor) /
                        (rope.high_frequency_factor - rope.low_frequency_factor);
    const double share = std::clamp(kept, 0.0, 1.0);
    frequency = (1 - share) * frequency / rope.factor + share * frequency;
  }
}

void scale_yarn(const rope_config& rope, double context, std::vector<double>& frequencies) {
  const auto pairs = static_cast<double>(frequencies.size());
  // The pair that makes so many turns over the trained context.
  const auto pair_with = [&](double turns) {
    return pairs * std::log(context / (turns * 2 * std::numbers::pi)) / std::log(rope.theta);
  };
  double low = pair_with(rope.beta_fast);
  double high = pair_with(rope.beta_slow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, 2 * pairs - 1);
  if (low == high) high += 0.001;
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double divided = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] *= divided / rope.factor + (1 - divided);
  }
}

}  // namespace

rope_angles::rope_angles(const model_config& config, bool local) {
  const rope_config& rope = config.rope;
  const bool own_base = local && rope.local_theta > 0;
  const double theta = own_base ? rope.local_theta : rope.theta;
  const std::int64_t dimensions = rope.dimensions > 0 ? rope.dimensions : config.head_dim;
  for (std::int64_t i = 0; i < dimensions / 2; ++i) {
    frequencies_.push_back(
        std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(dimensions)));
  }
  if (own_base) return;
  const auto context = static_cast<double>(rope.original_positions > 0 ? rope.original_positions
                                                                       : config.max_positions);
  switch (rope.scaling) {
    case rope_scaling::none:
      break;
    case rope_scaling::linear:
      for (double& frequency : frequencies_) frequency /= rope.factor;
      break;
    case rope_scaling::llama3:
      scale_llama3(rope, context, frequencies_);
      break;
    case rope_scaling::yarn:
      scale_yarn(rope, context, frequencies_);
      magnitude_ = rope.factor > 1 ? 0.1 * std::log(rope.factor) + 1 : 1;
      break;
    case rope_scaling::other:
      throw infeasible_error("rope scaling '" + rope.scaling_name +
                             "' is not known; known: linear, llama3, yarn");
  }
  if (rope.attention_factor > 0) magnitude_ = rope.attention_factor;
  for (std::size_t i = 0; i < std::min(frequencies_.size(), rope.divisors.size()); ++i) {
    frequencies_[i] /= rope.divisors[i];
  }
}

void rope_angles::at(std::int64_t position, std::span<float> cosines,
                     std::span<float> sines) const {
  for (std::size_t i = 0; i < frequencies_.size(); ++i) {
    const double angle = static_cast<double>(position) * frequencies_[i];
    cosines[i] = static_cast<float>(std::cos(angle) * magnitude_);
    sines[i] = static_cast<float>(std::sin(angle) * magnitude_);
  }
}

}  // namespace octavo::model
