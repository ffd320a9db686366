// Choosing tokens: see sampler.hpp.
#include "model/sampling/sampler.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <ranges>
#include <unordered_map>
#include <unordered_set>

namespace octavo::model {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
constexpr float greedy_below = 1e-5F;
/// Sorting this many likeliest is nearly always enough for top-p.
constexpr std::size_t first_look = 512;

std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

void mask(std::span<float> logits, token_id token) {
  if (token >= 0 && static_cast<std::size_t>(token) < logits.size()) {
    logits[static_cast<std::size_t>(token)] = minus_infinity;
  }
}

void keep_only(std::span<float> logits, const std::vector<token_id>& allowed) {
  const std::unordered_set<token_id> keep(allowed.begin(), allowed.end());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!keep.contains(static_cast<token_id>(i))) logits[i] = minus_infinity;
  }
}

void apply_penalties(std::span<float> logits, const sampling_parameters& how,
                     const sampling_state& state) {
  std::unordered_map<token_id, int> generated;
  for (const token_id token : state.output) ++generated[token];
  for (const auto& [token, times] : generated) {
    if (token < 0 || static_cast<std::size_t>(token) >= logits.size()) continue;
    float& logit = logits[static_cast<std::size_t>(token)];
    logit -= how.frequency_penalty * static_cast<float>(times) + how.presence_penalty;
  }
  if (how.repetition_penalty == 1) return;
  std::unordered_set<token_id> seen(state.prompt.begin(), state.prompt.end());
  seen.insert(state.output.begin(), state.output.end());
  for (const token_id token : seen) {
    if (token < 0 || static_cast<std::size_t>(token) >= logits.size()) continue;
    float& logit = logits[static_cast<std::size_t>(token)];
    logit = logit > 0 ? logit / how.repetition_penalty : logit * how.repetition_penalty;
  }
}

double log_sum_exp(std::span<const float> logits, float largest) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit - largest));
  return std::log(sum) + largest;
}

// Several running maxima, so that no comparison waits for the one before it: a
// vocabulary is long, and this runs for every token.
float largest_of(std::span<const float> logits) {
  std::array<float, 8> most;
  most.fill(minus_infinity);
  std::size_t i = 0;
  for (; i + most.size() <= logits.size(); i += most.size()) {
    for (std::size_t j = 0; j < most.size(); ++j) {
      most[j] = logits[i + j] > most[j] ? logits[i + j] : most[j];
    }
  }
  for (; i < logits.size(); ++i) most[0] = std::max(most[0], logits[i]);
  return *std::ranges::max_element(most);
}

// The first of the largest.
token_id argmax(std::span<const float> logits) {
  const auto at = std::ranges::find(logits, largest_of(logits));
  return at == logits.end() ? 0 : static_cast<token_id>(at - logits.begin());
}

bool is_untouched(const sampling_parameters& how, const sampling_state& state) {
  return how.logit_bias.empty() && how.allowed_token_ids.empty() && how.bad_token_ids.empty() &&
         std::ssize(state.output) >= how.min_tokens && how.presence_penalty == 0 &&
         how.frequency_penalty == 0 && how.repetition_penalty == 1;
}

}  // namespace

double uniform_at(std::uint64_t seed, std::uint64_t counter) {
  return static_cast<double>(mix(mix(seed) ^ (counter * 0xd1342543de82ef95ULL)) >> 11) * 0x1p-53;
}

void sampler::adjust(std::span<float> logits, const sampling_parameters& how,
                     const sampling_state& state) {
  for (const auto& [token, bias] : how.logit_bias) {
    if (token >= 0 && static_cast<std::size_t>(token) < logits.size()) {
      logits[static_cast<std::size_t>(token)] += bias;
    }
  }
  if (!how.allowed_token_ids.empty()) keep_only(logits, how.allowed_token_ids);
  for (const token_id token : how.bad_token_ids) mask(logits, token);
  if (std::ssize(state.output) < how.min_tokens) {
    for (const token_id token : state.end_tokens) mask(logits, token);
    for (const token_id token : how.stop_token_ids) mask(logits, token);
  }
  const bool penalized =
      how.presence_penalty != 0 || how.frequency_penalty != 0 || how.repetition_penalty != 1;
  if (penalized) apply_penalties(logits, how, state);
}

// Fills candidates_ with the `count` largest, descending, ties by id.
void sampler::keep_likeliest(std::span<const float> logits, std::size_t count) {
  const auto likelier = [](const candidate& a, const candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  };
  candidates_.clear();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > minus_infinity) candidates_.push_back({logits[i], static_cast<token_id>(i)});
  }
  if (count < candidates_.size()) {
    std::ranges::nth_element(candidates_, candidates_.begin() + static_cast<std::ptrdiff_t>(count),
                             likelier);
    candidates_.resize(count);
  }
  std::ranges::sort(candidates_, likelier);
}

// Weighs the candidates, likeliest first, and stops where min-p or top-p says.
// Returns the weight kept.
double sampler::weigh(const sampling_parameters& how, float temperature, double total) {
  weights_.clear();
  double kept = 0;
  for (const candidate& c : candidates_) {
    const double weight = std::exp((c.logit - candidates_.front().logit) / temperature);
    const bool cut = weight < how.min_p || (how.top_p < 1 && kept >= how.top_p * total);
    if (cut && !weights_.empty()) break;
    weights_.push_back(weight);
    kept += weight;
  }
  return kept;
}

// From the whole vocabulary, in the order of ids: nothing is cut, so nothing must
// be sorted.
token_id sampler::draw_any(std::span<const float> logits, float temperature, float largest,
                           double uniform) {
  weights_.resize(logits.size());
  double total = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    weights_[i] = std::exp((logits[i] - largest) / temperature);
    total += weights_[i];
  }
  double left = uniform * total;
  token_id last = -1;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (weights_[i] == 0) continue;
    last = static_cast<token_id>(i);
    left -= weights_[i];
    if (left < 0) break;
  }
  return last;
}

token_id sampler::draw(std::span<const float> logits, const sampling_parameters& how,
                       double uniform) {
  const float temperature = std::max(how.temperature, 1e-2F);
  const float largest = largest_of(logits);
  if (largest == minus_infinity) return -1;
  const auto mass = [&](auto&& values) {
    double sum = 0;
    for (const float logit : values) sum += std::exp((logit - largest) / temperature);
    return sum;
  };
  const bool uncut = how.top_k <= 0 && how.top_p >= 1 && how.min_p <= 0;
  if (uncut) return draw_any(logits, temperature, largest, uniform);
  const bool top_k = how.top_k > 0 && static_cast<std::size_t>(how.top_k) < logits.size();
  keep_likeliest(logits, top_k ? static_cast<std::size_t>(how.top_k) : first_look);
  const double total =
      top_k ? mass(candidates_ | std::views::transform(&candidate::logit)) : mass(logits);
  double kept = weigh(how, temperature, total);
  if (!top_k && weights_.size() == candidates_.size() && candidates_.size() < logits.size()) {
    keep_likeliest(logits, logits.size());
    kept = weigh(how, temperature, total);
  }
  double left = uniform * kept;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    left -= weights_[i];
    if (left < 0) return candidates_[i].token;
  }
  return candidates_[weights_.size() - 1].token;
}

sampled_token sampler::sample(std::span<float> logits, const sampling_parameters& how,
                              const sampling_state& state) {
  sampled_token chosen;
  const token_id likeliest = argmax(logits);
  const float largest = logits[static_cast<std::size_t>(likeliest)];
  const bool wants_logprobs = how.logprobs >= 0;
  double normalizer = 0;
  std::vector<float> raw;
  if (wants_logprobs) {
    normalizer = log_sum_exp(logits, largest);
    raw.assign(logits.begin(), logits.end());
    keep_likeliest(logits, static_cast<std::size_t>(how.logprobs));
    for (const candidate& c : candidates_) {
      chosen.top.emplace_back(c.token, static_cast<float>(c.logit - normalizer));
    }
  }
  const bool untouched = is_untouched(how, state);
  if (!untouched) adjust(logits, how, state);
  if (how.temperature < greedy_below) {
    chosen.token = untouched ? likeliest : argmax(logits);
    if (logits[static_cast<std::size_t>(chosen.token)] == minus_infinity) chosen.token = likeliest;
  } else {
    chosen.token = draw(logits, how, uniform_at(state.seed, state.output.size()));
    if (chosen.token < 0) chosen.token = likeliest;
  }
  if (wants_logprobs) {
    chosen.logprob = static_cast<float>(raw[static_cast<std::size_t>(chosen.token)] - normalizer);
  }
  return chosen;
}

}  // namespace octavo::model
