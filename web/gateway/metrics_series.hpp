// The time series behind metrics.hpp: each name with its help, labels and buckets.
// Internal to metrics.cpp.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <string>
#include <vector>

namespace octavo::gateway {

/// Makes series of one prefix and one set of labels.
class series_maker {
 public:
  series_maker(prometheus::Registry& registry, std::string prefix, prometheus::Labels labels)
      : registry_(registry), prefix_(std::move(prefix)), labels_(std::move(labels)) {}

  [[nodiscard]] prometheus::Counter& counter(const std::string& name, const std::string& help,
                                             const prometheus::Labels& more = {}) const;
  [[nodiscard]] prometheus::Gauge& gauge(const std::string& name, const std::string& help,
                                         const prometheus::Labels& more = {}) const;
  [[nodiscard]] prometheus::Histogram& histogram(const std::string& name, const std::string& help,
                                                 const std::vector<double>& buckets) const;

 private:
  [[nodiscard]] prometheus::Labels with(const prometheus::Labels& more) const;

  prometheus::Registry& registry_;
  std::string prefix_;
  prometheus::Labels labels_;
};

/// 1, 2, 5, 10, 20, 50 … up to `max`.
[[nodiscard]] std::vector<double> one_two_five_buckets(std::int32_t max);

/// Gauges and counters of one engine.
struct engine_counts {
  explicit engine_counts(const series_maker& make);

  prometheus::Gauge& running;
  prometheus::Gauge& waiting;
  prometheus::Gauge& kv_usage;
  prometheus::Counter& preemptions;
  prometheus::Counter& cache_queries;
  prometheus::Counter& cache_hits;

  prometheus::Counter& prompt_tokens;
  prometheus::Counter& generation_tokens;
  prometheus::Counter& computed_tokens;
  prometheus::Counter& hit_tokens;
  prometheus::Counter& cached_tokens;
  prometheus::Counter& recomputed_tokens;

  prometheus::Counter& stopped;
  prometheus::Counter& at_length;
  prometheus::Counter& aborted;
  prometheus::Counter& failed;
};

/// Histograms of one engine in tokens.
struct engine_lengths {
  engine_lengths(const series_maker& make, std::int32_t max_model_len);

  prometheus::Histogram& prompt_length;
  prometheus::Histogram& generation_length;
  prometheus::Histogram& generation_length_max;
  prometheus::Histogram& max_tokens;
  prometheus::Histogram& prefill_length;
  prometheus::Histogram& samples;
  prometheus::Histogram& iteration_tokens;
};

/// Histograms of one engine in seconds.
struct engine_times {
  explicit engine_times(const series_maker& make);

  prometheus::Histogram& first_token;
  prometheus::Histogram& inter_token;
  prometheus::Histogram& per_output_token;
  prometheus::Histogram& end_to_end;
  prometheus::Histogram& queue;
  prometheus::Histogram& inference;
  prometheus::Histogram& prefill;
  prometheus::Histogram& decode;
};

/// All series of one engine.
struct engine_series : engine_counts, engine_lengths, engine_times {
  engine_series(const series_maker& make, std::int32_t max_model_len)
      : engine_counts(make), engine_lengths(make, max_model_len), engine_times(make) {}
};

}  // namespace octavo::gateway
