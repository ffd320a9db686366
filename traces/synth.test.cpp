// Synthetic traces against the numbers they were asked for.
#include "traces/synth.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <vector>

#include "tests/support/catch.hpp"
#include "traces/summary.hpp"
#include "traces/temp_file.hpp"
#include "traces/writer.hpp"

using namespace octavo;
using namespace octavo::traces;
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string text_of(const trace& t) {
  std::ostringstream out;
  write_trace(t, out);
  return out.str();
}

/// Mean and coefficient of variation of the gaps between arrivals, in seconds.
std::pair<double, double> gaps_of(const trace& t) {
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 1; i < t.requests.size(); ++i) {
    const auto gap_us = (t.requests[i].arrival - t.requests[i - 1].arrival).raw();
    const double gap_s = static_cast<double>(gap_us) * 1e-6;
    sum += gap_s;
    squares += gap_s * gap_s;
  }
  const double n = static_cast<double>(t.requests.size() - 1);
  const double mean = sum / n;
  return {mean, std::sqrt(std::max(0.0, squares / n - mean * mean)) / mean};
}

synth_options large(arrival_kind arrivals) {
  synth_options o;
  o.requests = 100'000;
  o.rate_rps = 10;
  o.arrivals = arrivals;
  return o;
}

}  // namespace

TEST_CASE("arrivals have the rate and the variation asked for") {
  const auto [poisson_mean, poisson_cv] = gaps_of(synthesize(large(arrival_kind::poisson)));
  CHECK(poisson_mean == Approx(0.1).epsilon(0.02));
  CHECK(poisson_cv == Approx(1).epsilon(0.02));
  synth_options bursty = large(arrival_kind::gamma);
  bursty.cv = 3;
  const auto [gamma_mean, gamma_cv] = gaps_of(synthesize(bursty));
  CHECK(gamma_mean == Approx(0.1).epsilon(0.05));
  CHECK(gamma_cv == Approx(3).epsilon(0.05));
  const auto [uniform_mean, uniform_cv] = gaps_of(synthesize(large(arrival_kind::uniform)));
  CHECK(uniform_mean == Approx(0.1).epsilon(1e-6));
  CHECK(uniform_cv < 0.001);
  CHECK(synthesize(large(arrival_kind::at_once)).requests.back().arrival == micros{0});
}

TEST_CASE("diurnal arrivals peak in the middle of the cycle, in the ratio asked for") {
  synth_options o = large(arrival_kind::diurnal);
  o.period_s = 1000;
  o.peak_to_trough = 9;
  const trace t = synthesize(o);
  // Expected shares of tenths of a cycle: the integral of 1 - 0.8 cos(2 pi x).
  std::vector<double> tenths(10);
  const std::int64_t cycles_end_us = 10 * 1'000'000'000LL;
  double counted = 0;
  for (const request& r : t.requests) {
    if (r.arrival.raw() >= cycles_end_us) break;
    ++tenths[static_cast<std::size_t>(r.arrival.raw() % 1'000'000'000 / 100'000'000)];
    ++counted;
  }
  for (std::size_t i = 0; i < 10; ++i) {
    const double turn = 6.283185307179586;
    const double from = static_cast<double>(i) / 10;
    const double expected =
        0.1 - 0.8 / turn * (std::sin(turn * (from + 0.1)) - std::sin(turn * from));
    CHECK(tenths[i] / counted == Approx(expected).margin(0.004));
  }
  CHECK(counted / 10'000 == Approx(10).epsilon(0.03));
}

TEST_CASE("lengths are lognormal within their bounds, or fixed") {
  synth_options o = large(arrival_kind::poisson);
  o.prompt = {lognormal_median(500, 1), 1, token_count{1}, token_count{1'000'000}};
  o.output = {100, 0.5, token_count{80}, token_count{120}};
  const trace_summary s = summarize(synthesize(o));
  CHECK(s.prompt.mean == Approx(500).epsilon(0.02));
  CHECK(s.prompt.p50 == Approx(500 * std::exp(-0.5)).epsilon(0.02));
  CHECK(s.prompt.p90 == Approx(500 * std::exp(-0.5 + 1.281552)).epsilon(0.03));
  CHECK(s.output.min == 80);
  CHECK(s.output.max == 120);
  CHECK(s.output.p50 == 100);
  o.output.sigma = 0;
  CHECK(summarize(synthesize(o)).output.mean == 100);
}

TEST_CASE("system prompts are shared by popularity and nothing else is") {
  synth_options o;
  o.requests = 20'000;
  o.prefixes = 3;
  o.prefix_tokens = token_count{40};  // two full blocks of 16, then 8 tokens of a third
  o.zipf = 1;
  const trace t = synthesize(o);
  std::map<std::uint64_t, std::size_t> uses;
  for (const auto id : t.prefix_ids) ++uses[id];
  // Shares 1 : 1/2 : 1/3 of the whole.
  CHECK(static_cast<double>(uses[0]) / o.requests == Approx(6.0 / 11).margin(0.01));
  CHECK(static_cast<double>(uses[2]) / o.requests == Approx(3.0 / 11).margin(0.01));
  CHECK(static_cast<double>(uses[4]) / o.requests == Approx(2.0 / 11).margin(0.01));
  CHECK(uses[0] == uses[1]);
  for (const auto& [id, count] : uses) {
    if (id >= 6) REQUIRE(count == 1);
  }
  for (const request& r : t.requests) {
    REQUIRE(r.prompt_tokens > token_count{40});
    REQUIRE(static_cast<int>(r.prefix_count) == blocks_for(r.prompt_tokens, t.prefix_block).raw());
  }
}

TEST_CASE("a session's prompt holds all that was said before, and its full blocks' ids") {
  synth_options o;
  o.requests = 2000;
  o.turns_min = 2;
  o.turns_max = 5;
  o.think_s = 3;
  const trace t = synthesize(o);
  std::size_t follow_ups = 0;
  double think_s = 0;
  for (const request& r : t.requests) {
    if (r.after == none) continue;
    ++follow_ups;
    think_s += static_cast<double>(r.delay.raw()) * 1e-6;
    const request& before = t.requests[r.after];
    REQUIRE(r.session == before.session);
    REQUIRE(r.prompt_tokens > before.prompt_tokens + before.output_tokens);
    const auto old_ids = t.prefix_of(before);
    const auto ids = t.prefix_of(r);
    const auto shared = std::mismatch(old_ids.begin(), old_ids.end(), ids.begin(), ids.end());
    REQUIRE(shared.first - old_ids.begin() == before.prompt_tokens.raw() / 16);
  }
  CHECK(static_cast<double>(follow_ups) / 2000 == Approx(1 - 1 / 3.5).margin(0.02));
  CHECK(think_s / static_cast<double>(follow_ups) == Approx(3).epsilon(0.1));
}

TEST_CASE("a session ends before it would exceed the context") {
  synth_options o;
  o.requests = 2000;
  o.turns_max = 50;
  o.prompt.max = token_count{1000};
  o.output.max = token_count{1000};
  o.context_max = token_count{2500};
  const trace t = synthesize(o);
  CHECK(t.requests.size() == 2000);
  for (const request& r : t.requests) {
    REQUIRE(r.prompt_tokens + r.output_tokens <= token_count{2500});
  }
  o.context_max = token_count{100};
  CHECK_THROWS_WITH(synthesize(o), ContainsSubstring("room for the longest first turn"));
}

TEST_CASE("the same seed gives the same bytes, another seed others") {
  synth_options o;
  o.requests = 500;
  o.prefixes = 2;
  o.turns_max = 3;
  const std::string first = text_of(synthesize(o));
  CHECK(first == text_of(synthesize(o)));
  o.seed = 2;
  CHECK(first != text_of(synthesize(o)));
}

TEST_CASE("a longer trace begins like the shorter one") {
  synth_options o;
  o.requests = 100;
  o.turns_max = 3;
  const std::string shorter = text_of(synthesize(o));
  o.requests = 200;
  CHECK(text_of(synthesize(o)).substr(0, shorter.size()) == shorter);
}

TEST_CASE("options out of range are refused by name") {
  const auto error_of = [](auto change) {
    synth_options o;
    change(o);
    try {
      (void)synthesize(o);
    } catch (const input_error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CHECK_THAT(error_of([](auto& o) { o.requests = 0; }), ContainsSubstring("requests"));
  CHECK_THAT(error_of([](auto& o) { o.rate_rps = 0; }), ContainsSubstring("rate: found 0"));
  CHECK_THAT(error_of([](auto& o) { o.rate_rps = std::nan(""); }), ContainsSubstring("rate"));
  CHECK_THAT(error_of([](auto& o) { o.cv = -1; }), ContainsSubstring("cv"));
  CHECK_THAT(error_of([](auto& o) { o.peak_to_trough = 0.5; }), ContainsSubstring("peak"));
  CHECK_THAT(error_of([](auto& o) { o.prompt.sigma = -1; }), ContainsSubstring("prompt sigma"));
  CHECK_THAT(error_of([](auto& o) { o.output.min = token_count{0}; }),
             ContainsSubstring("output min"));
  CHECK_THAT(error_of([](auto& o) { o.output.max = token_count{0}; }),
             ContainsSubstring("output max"));
  CHECK_THAT(error_of([](auto& o) { o.turns_min = 4; }), ContainsSubstring("turns max"));
  CHECK_THAT(error_of([](auto& o) { o.prefix_block = token_count{0}; }),
             ContainsSubstring("prefix block"));
}
