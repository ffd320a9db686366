// The sampler against hand-computed choices and frequencies.
#include "model/sampling/sampler.hpp"

#include <cmath>
#include <map>

#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;

namespace {

std::vector<float> logs(std::initializer_list<double> probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

std::map<token_id, double> frequencies(const std::vector<float>& logits,
                                       const sampling_parameters& how) {
  constexpr int draws = 20'000;
  std::map<token_id, double> seen;
  sampler s;
  for (int i = 0; i < draws; ++i) {
    std::vector<float> copy = logits;
    sampling_state state;
    state.seed = static_cast<std::uint64_t>(i);
    seen[s.sample(copy, how, state).token] += 1.0 / draws;
  }
  return seen;
}

token_id greedy(std::vector<float> logits, sampling_parameters how, sampling_state state = {}) {
  how.temperature = 0;
  sampler s;
  return s.sample(logits, how, state).token;
}

}  // namespace

TEST_CASE("greedy takes the largest, and of equals the smallest id") {
  CHECK(greedy({0.5F, 2, 2, 1}, {}) == 1);
}

TEST_CASE("plain sampling draws each token as often as it is likely") {
  const auto seen = frequencies(logs({0.5, 0.3, 0.15, 0.05}), {});
  CHECK(seen.at(0) == Catch::Approx(0.5).margin(0.015));
  CHECK(seen.at(1) == Catch::Approx(0.3).margin(0.015));
  CHECK(seen.at(2) == Catch::Approx(0.15).margin(0.015));
  CHECK(seen.at(3) == Catch::Approx(0.05).margin(0.015));
}

TEST_CASE("temperature 2 takes the square roots of probabilities") {
  sampling_parameters how;
  how.temperature = 2;
  const auto seen = frequencies(logs({0.64, 0.36}), how);  // 0.8 : 0.6
  CHECK(seen.at(0) == Catch::Approx(0.8 / 1.4).margin(0.015));
}

TEST_CASE("top-k keeps the k likeliest and renormalizes") {
  sampling_parameters how;
  how.top_k = 2;
  const auto seen = frequencies(logs({0.1, 0.3, 0.2, 0.4}), how);
  CHECK(seen.size() == 2);
  CHECK(seen.at(3) == Catch::Approx(4.0 / 7).margin(0.015));
}

TEST_CASE("top-p keeps the fewest whose probabilities reach p") {
  sampling_parameters how;
  how.top_p = 0.6F;
  const auto seen = frequencies(logs({0.1, 0.5, 0.3, 0.1}), how);
  CHECK(seen.size() == 2);
  CHECK(seen.at(1) == Catch::Approx(0.5 / 0.8).margin(0.015));
}

TEST_CASE("top-p over a flat vocabulary looks beyond its first candidates") {
  sampling_parameters how;
  how.top_p = 0.9F;
  const std::vector<float> flat(2000, 1.0F);
  const auto seen = frequencies(flat, how);
  CHECK(seen.size() > 1500);
  CHECK(seen.size() <= 1801);
}

TEST_CASE("min-p drops what is less than that share of the likeliest") {
  sampling_parameters how;
  how.min_p = 0.5F;
  const auto seen = frequencies(logs({0.5, 0.3, 0.2}), how);
  CHECK(seen.size() == 2);
}

TEST_CASE("penalties, bias and masks change the choice as computed by hand") {
  const std::vector<token_id> output{1, 1};
  const std::vector<token_id> prompt{0};
  sampling_state state;
  state.output = output;
  state.prompt = prompt;
  sampling_parameters how;
  how.frequency_penalty = 0.6F;  // 3 - 2 * 0.6 = 1.8 < 2
  CHECK(greedy({1, 3, 2}, how, state) == 2);
  how = {};
  how.presence_penalty = 0.9F;  // 3 - 0.9 = 2.1 > 2
  CHECK(greedy({1, 3, 2}, how, state) == 1);
  how = {};
  how.repetition_penalty = 2;  // 3 / 2 = 1.5 and, of the prompt, 4 / 2 = 2 > 1.9
  CHECK(greedy({4, 3, 1.9F}, how, state) == 0);
  how = {};
  how.logit_bias = {{2, 5.0F}};
  CHECK(greedy({1, 3, 2}, how) == 2);
  how = {};
  how.allowed_token_ids = {0, 2};
  CHECK(greedy({1, 3, 2}, how) == 2);
  how = {};
  how.bad_token_ids = {1};
  CHECK(greedy({1, 3, 2}, how) == 2);
}

TEST_CASE("no end is chosen before min_tokens") {
  const std::vector<token_id> ends{1};
  sampling_state state;
  state.end_tokens = ends;
  sampling_parameters how;
  how.min_tokens = 1;
  CHECK(greedy({1, 3, 2}, how, state) == 2);
  const std::vector<token_id> output{2};
  state.output = output;
  CHECK(greedy({1, 3, 2}, how, state) == 1);
}

TEST_CASE("log-probabilities are those of the raw logits") {
  sampling_parameters how;
  how.temperature = 0;
  how.logprobs = 2;
  how.bad_token_ids = {1};
  std::vector<float> logits = logs({0.2, 0.7, 0.1});
  sampler s;
  const sampled_token chosen = s.sample(logits, how, {});
  CHECK(chosen.token == 0);
  CHECK(chosen.logprob == Catch::Approx(std::log(0.2)));
  REQUIRE(chosen.top.size() == 2);
  CHECK(chosen.top[0].first == 1);
  CHECK(chosen.top[0].second == Catch::Approx(std::log(0.7)));
  CHECK(chosen.top[1].first == 0);
}

TEST_CASE("the same seed and position give the same number, others differ") {
  CHECK(uniform_at(7, 3) == uniform_at(7, 3));
  CHECK(uniform_at(7, 3) != uniform_at(7, 4));
  CHECK(uniform_at(7, 3) != uniform_at(8, 3));
}

TEST_CASE("where masks leave nothing, the likeliest of the raw logits is taken") {
  sampling_parameters how;
  how.allowed_token_ids = {99};
  std::vector<float> logits{1, 3, 2};
  sampler s;
  CHECK(s.sample(logits, how, {}).token == 1);
}
