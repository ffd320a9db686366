// Makes request traces from a few numbers: how requests arrive, how long they
// are, what they share, and how people go on talking. The same options give the
// same trace on every machine.
//
//   synth_options o;
//   o.requests = 400;
//   o.prefixes = 4;        // four system prompts
//   o.turns_max = 5;       // up to five turns a session
//   trace t = synthesize(o);
#pragma once

#include <cstdint>
#include <string_view>

#include "core/error.hpp"
#include "traces/trace.hpp"

namespace octavo::traces {

enum class arrival_kind {
  poisson,  // exponential gaps
  gamma,    // gaps of a given coefficient of variation: above 1 is burstier than Poisson
  diurnal,  // Poisson at a rate that follows a cosine, lowest at the start
  uniform,  // equal gaps
  at_once   // all at 0
};

/// A lognormal length: exp(normal(log(median), sigma)), cut off to [min, max].
/// Sigma 0 makes every length the median.
struct length_options {
  double median_tokens;
  double sigma;
  token_count min{1};
  token_count max{100'000};
};

/// The median of the lognormal distribution of the given mean, before cutting off.
[[nodiscard]] double lognormal_median(double mean, double sigma);

struct synth_options {
  std::uint64_t seed = 1;
  std::uint32_t requests = 1000;

  arrival_kind arrivals = arrival_kind::poisson;
  /// Requests per second on average. With sessions, they start at this rate over
  /// their mean number of turns; how fast later turns follow depends on the engine.
  double rate_rps = 4;
  /// Gaps' standard deviation over their mean, for `gamma`.
  double cv = 2;
  /// For `diurnal`: a cycle's length, and its highest over its lowest rate.
  double period_s = 3600;
  double peak_to_trough = 4;

  /// A user's message: the prompt without system prompt and history.
  length_options prompt{250, 0.9};
  length_options output{200, 0.7};

  /// Distinct system prompts (0: none) of `prefix_tokens` tokens each; a session
  /// keeps its own. Popularity falls as 1 / rank^zipf; 0 makes all equally likely.
  std::uint32_t prefixes = 0;
  token_count prefix_tokens{512};
  double zipf = 1;
  /// Tokens of one prefix id, where there are system prompts or several turns.
  token_count prefix_block{16};

  /// Turns of a session, equally likely between the two. Each turn's prompt holds
  /// all before it, answers included, and comes a think time after the last answer.
  std::uint32_t turns_min = 1;
  std::uint32_t turns_max = 1;
  /// Mean of the think times, which are exponential.
  double think_s = 10;
  /// A session ends before a turn that would exceed this; 0: no limit.
  token_count context_max;
};

/// Makes the trace. Throws input_error that names an option out of its range.
[[nodiscard]] trace synthesize(const synth_options& options);

}  // namespace octavo::traces
