// See sampling_batch.hpp.
#include "gpu/kernels/sampling/sampling_batch.hpp"

#include <algorithm>
#include <ranges>
#include <string>

#include "core/error.hpp"

namespace octavo::gpu {
namespace {

constexpr float greedy_below = 1e-5F;

void require_room(std::size_t wanted, int limit, const char* what) {
  if (wanted <= static_cast<std::size_t>(limit)) return;
  throw input_error("sampling: " + std::to_string(wanted) + " " + what +
                    " in a step; allowed are " + std::to_string(limit));
}

std::vector<std::int32_t> banned_tokens(const sampling_parameters& how,
                                        const sampling_request& request) {
  std::vector<std::int32_t> banned(how.bad_token_ids.begin(), how.bad_token_ids.end());
  if (static_cast<std::int64_t>(request.output_tokens) < how.min_tokens) {
    banned.insert(banned.end(), request.end_tokens.begin(), request.end_tokens.end());
    banned.insert(banned.end(), how.stop_token_ids.begin(), how.stop_token_ids.end());
  }
  return banned;
}

}  // namespace

sampling_batch::sampling_batch(const sampling_limits& limits) : limits_(limits) {
  rows_.reserve(static_cast<std::size_t>(limits.rows));
  biases_.reserve(static_cast<std::size_t>(limits.biases));
  tokens_.reserve(static_cast<std::size_t>(limits.tokens));
}

bool sampling_batch::needs_history(const sampling_parameters& how) {
  return how.presence_penalty != 0 || how.frequency_penalty != 0 || how.repetition_penalty != 1;
}

void sampling_batch::clear() {
  rows_.clear();
  biases_.clear();
  tokens_.clear();
  any_draws_ = false;
  top_max_ = 0;
}

list_range sampling_batch::add_tokens(std::vector<std::int32_t> list) {
  const auto begin = static_cast<std::int32_t>(tokens_.size());
  tokens_.insert(tokens_.end(), list.begin(), list.end());
  return {begin, static_cast<std::int32_t>(tokens_.size())};
}

void sampling_batch::add(const sampling_parameters& how, const sampling_request& request) {
  const auto banned = banned_tokens(how, request);
  require_room(rows_.size() + 1, limits_.rows, "rows");
  require_room(biases_.size() + how.logit_bias.size(), limits_.biases, "logit biases");
  require_room(tokens_.size() + how.allowed_token_ids.size() + banned.size(), limits_.tokens,
               "allowed and banned tokens");
  if (how.logprobs > sampling_top_max) {
    throw input_error("sampling: logprobs is " + std::to_string(how.logprobs) +
                      "; allowed are up to " + std::to_string(sampling_top_max));
  }
  const bool penalized = needs_history(how);
  if (penalized && request.history < 0) {
    throw input_error("sampling: penalties need a slot of the token history; history is " +
                      std::to_string(request.history));
  }
  sampling_row row;
  row.temperature = how.temperature;
  row.top_p = how.top_p;
  row.min_p = how.min_p;
  row.top_k = how.top_k;
  row.presence_penalty = how.presence_penalty;
  row.frequency_penalty = how.frequency_penalty;
  row.repetition_penalty = how.repetition_penalty;
  row.history = penalized ? request.history : -1;
  row.seed = request.seed;
  row.counter = request.output_tokens;
  row.top_logprobs = std::max(how.logprobs, -1);
  const auto begin = static_cast<std::int32_t>(biases_.size());
  for (const auto& [token, value] : how.logit_bias) biases_.push_back({token, value});
  row.biases = {begin, static_cast<std::int32_t>(biases_.size())};
  // Stable: what is added to one token is added in the order given.
  std::ranges::stable_sort(biases_.begin() + begin, biases_.end(), {}, &token_bias::token);
  row.allowed = add_tokens({how.allowed_token_ids.begin(), how.allowed_token_ids.end()});
  row.banned = add_tokens(banned);
  rows_.push_back(row);
  any_draws_ = any_draws_ || !(how.temperature < greedy_below);
  top_max_ = std::max(top_max_, row.top_logprobs);
}

}  // namespace octavo::gpu
