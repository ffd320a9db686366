// The device's choices against those of model/sampling/sampler, over many settings.
#include "gpu/kernels/sampling/sampling.hpp"

#include <limits>

#include "core/error.hpp"
#include "gpu/kernels/common/test_rows.hpp"
#include "gpu/kernels/sampling/sampling_batch.hpp"
#include "gpu/simt/schedules.hpp"
#include "model/sampling/sampler.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::gpu;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// One row of a launch.
struct request {
  std::vector<float> logits;
  sampling_parameters how;
  std::vector<token_id> prompt;
  std::vector<token_id> output;
  std::vector<token_id> end_tokens;
  std::uint64_t seed = 0;
};

std::vector<model::sampled_token> sampler_choices(const std::vector<request>& requests) {
  std::vector<model::sampled_token> choices;
  model::sampler s;
  for (const request& r : requests) {
    std::vector<float> logits = r.logits;
    choices.push_back(s.sample(logits, r.how, {r.prompt, r.output, r.seed, r.end_tokens}));
  }
  return choices;
}

/// Runs one launch, its history filled as an executor does.
class device_run {
 public:
  device_run(const std::vector<request>& requests, bool any_draws_given = true)
      : vocabulary_(static_cast<int>(requests[0].logits.size())), batch_({256, 16384, 65536}) {
    const auto rows = requests.size();
    const auto width = static_cast<std::size_t>(vocabulary_);
    history_ = device_array<std::uint32_t>(rows * width);
    std::vector<float> logits;
    for (std::size_t i = 0; i < rows; ++i) {
      const request& r = requests[i];
      logits.insert(logits.end(), r.logits.begin(), r.logits.end());
      batch_.add(r.how, {r.seed, r.output.size(), r.end_tokens, static_cast<int>(i)});
      fill_history(static_cast<int>(i), r);
    }
    launch(on_device(s_, logits), any_draws_given && batch_.any_draws());
  }

  [[nodiscard]] model::sampled_token at(std::size_t row) const {
    model::sampled_token token{tokens[row], logprobs[row], {}};
    const auto most = static_cast<std::size_t>(batch_.top_max());
    for (std::size_t i = row * most; i < (row + 1) * most && top_tokens[i] >= 0; ++i) {
      token.top.emplace_back(top_tokens[i], top_logprobs[i]);
    }
    return token;
  }

  std::vector<std::int32_t> tokens;
  std::vector<float> logprobs;
  std::vector<std::int32_t> top_tokens;
  std::vector<float> top_logprobs;
  std::vector<std::uint32_t> history;

 private:
  void fill_history(int slot, const request& r) {
    clear_history(history_.data(), vocabulary_, slot, s_);
    for (const bool prompt : {true, false}) {
      const auto& list = prompt ? r.prompt : r.output;
      if (list.empty()) continue;
      const auto copy = on_device(s_, list);
      add_history(history_.data(), vocabulary_, slot, copy.data(), static_cast<int>(list.size()),
                  prompt, s_);
      s_.synchronize();
    }
  }

  void launch(device_array<float> logits, bool any_draws) {
    const auto rows = batch_.rows().size();
    const auto most = static_cast<std::size_t>(batch_.top_max());
    auto how = on_device(s_, std::vector(batch_.rows().begin(), batch_.rows().end()));
    auto biases = on_device(s_, std::vector(batch_.biases().begin(), batch_.biases().end()));
    auto lists = on_device(s_, std::vector(batch_.tokens().begin(), batch_.tokens().end()));
    device_array<std::int32_t> d_tokens(rows);
    device_array<std::int32_t> d_top_tokens(rows * most);
    device_array<float> d_logprobs(rows);
    device_array<float> d_top_logprobs(rows * most);
    device_array<unsigned char> workspace(
        sampling_workspace_bytes(static_cast<int>(rows), vocabulary_, batch_.top_max()));
    sampling_params p;
    p.rows = static_cast<int>(rows);
    p.vocabulary = vocabulary_;
    p.logits = logits.data();
    p.how = how.data();
    p.biases = biases.data();
    p.tokens = lists.data();
    p.history = history_.data();
    p.any_draws = any_draws;
    p.top_max = batch_.top_max();
    p.chosen = d_tokens.data();
    p.logprobs = d_logprobs.data();
    p.top_tokens = d_top_tokens.data();
    p.top_logprobs = d_top_logprobs.data();
    p.workspace = workspace.data();
    p.workspace_bytes = workspace.size();
    sample(p, s_);
    tokens = on_host(s_, d_tokens);
    logprobs = on_host(s_, d_logprobs);
    top_tokens = on_host(s_, d_top_tokens);
    top_logprobs = on_host(s_, d_top_logprobs);
    history = on_host(s_, history_);
  }

  stream s_;
  int vocabulary_;
  sampling_batch batch_;
  device_array<std::uint32_t> history_;
};

bool near(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || a == b ||
         std::fabs(a - b) < 2e-6F * (1 + std::fabs(b));
}

void compare(const std::vector<request>& requests) {
  const auto expected = sampler_choices(requests);
  const device_run run(requests);
  for (std::size_t row = 0; row < requests.size(); ++row) {
    const auto& how = requests[row].how;
    INFO("row " << row << ", temperature " << how.temperature << ", top_k " << how.top_k
                << ", top_p " << how.top_p << ", min_p " << how.min_p);
    const auto is = run.at(row);
    CHECK(is.token == expected[row].token);
    CHECK(near(is.logprob, expected[row].logprob));
    REQUIRE(is.top.size() == expected[row].top.size());
    for (std::size_t i = 0; i < is.top.size(); ++i) {
      CHECK(is.top[i].first == expected[row].top[i].first);
      CHECK(near(is.top[i].second, expected[row].top[i].second));
    }
  }
}

/// Draws requests of all kinds.
class request_maker {
 public:
  explicit request_maker(unsigned seed) : random_(seed) {}

  request next(std::size_t vocabulary) {
    request r;
    r.logits = logits(vocabulary);
    sampling_parameters& how = r.how;
    how.temperature = one_of<float>({0, 0.01F, 0.3F, 0.7F, 1, 1, 1.5F, 5});
    how.top_k = one_of<int>({0, 0, 0, 1, 2, 5, 50, 1000, 1 << 20});
    how.top_p = one_of<float>({1, 1, 1, 0, 0.1F, 0.5F, 0.9F, 0.99F, 0.9999F});
    how.min_p = one_of<float>({0, 0, 0, 0.01F, 0.1F, 0.9F, 1});
    how.logprobs = one_of<int>({-1, -1, 0, 1, 5, 20});
    if (chance(0.3)) how.presence_penalty = one_of<float>({-1, 0.3F, 1.5F});
    if (chance(0.3)) how.frequency_penalty = one_of<float>({-0.5F, 0.1F, 1.1F});
    if (chance(0.3)) how.repetition_penalty = one_of<float>({0.7F, 1.1F, 1.8F});
    if (chance(0.2)) how.allowed_token_ids = tokens(vocabulary, one_of<int>({1, 3, 100}));
    if (chance(0.2)) how.bad_token_ids = tokens(vocabulary, 20);
    if (chance(0.2)) how.stop_token_ids = tokens(vocabulary, 3);
    if (chance(0.3)) {
      for (const token_id token : tokens(vocabulary, 30)) {
        how.logit_bias.emplace_back(token, one_of<float>({-100, -1.3F, 0.7F, 5, 100}));
        how.logit_bias.emplace_back(token, 0.1F);
      }
    }
    how.min_tokens = one_of<int>({0, 0, 10});
    r.prompt = tokens(vocabulary, one_of<int>({0, 1, 40}));
    r.output = tokens(vocabulary, one_of<int>({0, 3, 40}));
    r.end_tokens = tokens(vocabulary, 2);
    r.seed = random_();
    return r;
  }

 private:
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[random_() % values.size()];
  }

  bool chance(double p) { return std::uniform_real_distribution<>()(random_) < p; }

  // Some of them outside of the vocabulary, and some twice.
  std::vector<token_id> tokens(std::size_t vocabulary, int count) {
    std::vector<token_id> list;
    for (int i = 0; i < count; ++i) {
      list.push_back(static_cast<token_id>(random_() % (vocabulary + 2)) - (chance(0.05) ? 5 : 0));
      if (chance(0.1)) list.push_back(list.back());
    }
    return list;
  }

  std::vector<float> logits(std::size_t vocabulary) {
    const float spread = one_of<float>({0, 0.1F, 1, 3, 10});
    const bool rounded = chance(0.4);  // as a bfloat16 head gives: many are equal
    std::vector<float> values(vocabulary);
    std::normal_distribution<float> normal(0, 1);
    for (float& v : values) {
      v = normal(random_) * spread + 5;
      if (rounded) v = static_cast<float>(static_cast<__nv_bfloat16>(v));
    }
    const double masked = one_of<double>({0, 0, 0.3, 0.999});
    for (float& v : values) v = chance(masked) ? -infinity : v;
    return values;
  }

  std::mt19937_64 random_;
};

request plain(std::vector<float> logits, std::uint64_t seed = 7) {
  request r;
  r.logits = std::move(logits);
  r.seed = seed;
  r.how.logprobs = 2;
  return r;
}

}  // namespace

TEST_CASE("the device chooses as the sampler does, whatever the settings") {
  request_maker maker(1);
  for (const std::size_t vocabulary : {1, 2, 33, 300, 300, 4095, 4096, 4097, 9000}) {
    INFO("vocabulary " << vocabulary);
    const std::size_t rows = vocabulary < 4000 ? 100 : 40;
    std::vector<request> requests;
    for (std::size_t i = 0; i < rows; ++i) requests.push_back(maker.next(vocabulary));
    compare(requests);
  }
}

TEST_CASE("sampling is the same under all schedules") {
  simt::for_each_schedule([](const char* name) {
    INFO(name);
    request_maker maker(2);
    std::vector<request> requests;
    for (int i = 0; i < 12; ++i) requests.push_back(maker.next(4500));
    compare(requests);
  });
}

TEST_CASE("every share of the unit interval draws the sampler's token") {
  std::vector<request> requests;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    request r = plain(random_rows<float>(700, 3, 2), seed);
    r.how.logprobs = -1;
    if (seed % 4 == 1) r.how.top_p = 0.8F;
    if (seed % 4 == 2) r.how.top_k = 40;
    if (seed % 4 == 3) r.how.min_p = 0.02F;
    requests.push_back(std::move(r));
  }
  compare(requests);
}

TEST_CASE("biases and penalties are rounded as the sampler rounds them") {
  // After them all logits are within some units in the last place of 2 or -2, so that
  // the largest shows every rounding.
  std::mt19937 random(5);
  std::uniform_real_distribution<float> noise(-1e-6F, 1e-6F);
  std::vector<request> requests;
  for (int row = 0; row < 100; ++row) {
    request r = plain({}, 1);
    sampling_parameters& how = r.how;
    how.temperature = 0;
    how.presence_penalty = 0.37F;
    how.frequency_penalty = 0.113F;
    how.repetition_penalty = 1.23F;
    const float wanted = row % 2 == 0 ? 2.0F : -2.0F;
    const float undone = wanted > 0 ? wanted * 1.23F : wanted / 1.23F;
    for (token_id token = 0; token < 64; ++token) {
      const int times = token % 5;
      r.output.insert(r.output.end(), static_cast<std::size_t>(times), token);
      if (token % 3 == 0) r.prompt.push_back(token);
      float logit = times > 0 || token % 3 == 0 ? undone : wanted;
      if (times > 0) logit += 0.113F * static_cast<float>(times) + 0.37F;
      if (token % 2 == 0) {
        logit -= 0.71F;
        how.logit_bias.emplace_back(token, 0.4F);
        how.logit_bias.emplace_back(token, 0.31F);
      }
      r.logits.push_back(logit + noise(random));
    }
    requests.push_back(std::move(r));
  }
  compare(requests);
}

TEST_CASE("limits that fall exactly between tokens cut where the sampler cuts") {
  std::vector<request> requests;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    request r = plain({2, 2, -1, 2, 2, -infinity}, seed);
    if (seed % 3 == 0) r.how.top_p = 0.5F;
    if (seed % 3 == 1) r.how.top_k = 3;
    if (seed % 3 == 2) r.how.min_p = 1;
    if (seed % 4 == 0) r.how.top_k = 4;
    if (seed % 4 == 0) r.how.top_p = 0.75F;
    requests.push_back(std::move(r));
  }
  compare(requests);
}

TEST_CASE("more equal logits than can be collected are drawn from as well") {
  std::vector<request> requests;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    requests.push_back(plain(std::vector<float>(9000, 1.5F), seed));
    requests.back().how.top_p = seed % 2 == 0 ? 0.9F : 1;
    requests.back().how.top_k = seed % 3 == 0 ? 0 : 7000;
    requests.back().how.bad_token_ids = {17};
  }
  compare(requests);
}

TEST_CASE("NaN logits are never chosen while there is another, and end nothing") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<request> requests;
  for (const float temperature : {0.0F, 1.0F}) {
    for (const int cut : {0, 1, 2, 3}) {
      for (auto logits : {std::vector<float>{nan, 1, 2, nan, 0.5F},
                          {nan, nan, nan, nan, nan},
                          {-infinity, nan, -infinity, -infinity, nan},
                          {-infinity, -infinity, -infinity, -infinity, -infinity}}) {
        request r = plain(std::move(logits));
        r.how.temperature = temperature;
        if (cut == 1) r.how.top_p = 0.7F;
        if (cut == 2) r.how.top_k = 2;
        if (cut == 3) r.how.min_p = 0.4F;
        requests.push_back(std::move(r));
      }
    }
  }
  compare(requests);
}

TEST_CASE("rows that are all greedy need two launches only") {
  std::vector<request> requests;
  for (int i = 0; i < 3; ++i) {
    requests.push_back(plain(random_rows<float>(5000, static_cast<unsigned>(i))));
    requests.back().how.temperature = 0;
  }
  compare(requests);
  const device_run run(requests, false);
  for (std::size_t row = 0; row < requests.size(); ++row) {
    CHECK(run.tokens[row] == sampler_choices(requests)[row].token);
  }
}

TEST_CASE("a chosen token is counted in its row's history, where there is one") {
  std::vector<request> requests;
  for (int i = 0; i < 2; ++i) requests.push_back(plain({1, 5, 2}));
  requests[0].how.temperature = 0;
  requests[0].how.presence_penalty = 0.5F;
  requests[0].prompt = {2};
  requests[0].output = {1};
  requests[1].how.temperature = 0;
  const device_run run(requests);
  CHECK(run.history == std::vector<std::uint32_t>{0, 2, history_prompt_bit, 0, 0, 0});
}

TEST_CASE("sampling refuses what it has no room for, naming it") {
  sampling_batch batch({1, 1, 2});
  sampling_parameters how;
  how.logit_bias = {{1, 1.0F}, {2, 1.0F}};
  CHECK_THROWS_WITH(batch.add(how, {}), "sampling: 2 logit biases in a step; allowed are 1");
  how.logit_bias.clear();
  how.bad_token_ids = {1, 2, 3};
  CHECK_THROWS_AS(batch.add(how, {}), input_error);
  how.bad_token_ids.clear();
  how.presence_penalty = 1;
  CHECK_THROWS_AS(batch.add(how, {}), input_error);
  how.presence_penalty = 0;
  batch.add(how, {});
  CHECK_THROWS_WITH(batch.add(how, {}), "sampling: 2 rows in a step; allowed are 1");
  stream s;
  sampling_params p;
  p.vocabulary = sampling_vocabulary_max + 1;
  CHECK_THROWS_WITH(sample(p, s), "sampling: vocabulary is 524289; allowed are 1 to 524288");
}
