// Follows requests by the engine's events: see metrics.hpp.
#include "web/gateway/metrics.hpp"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cctype>
#include <locale>
#include <sstream>
#include <unordered_map>

#include "core/error.hpp"
#include "web/gateway/metrics_series.hpp"

namespace octavo::gateway {
namespace {

/// One sample of a request under way.
struct sample_progress {
  /// By the scheduler's clock.
  micros first_token_at;
  micros last_token_at;
  /// By the front end's.
  double last_token_s = 0;
  std::int32_t tokens = 0;
  bool ended = false;
};

/// One prompt under way.
struct live_prompt {
  double arrived_s = 0;
  double preparation_s = 0;
  std::int32_t prompt_tokens = 0;
  std::int32_t max_tokens = 0;
  std::uint32_t replica = 0;
  std::int32_t longest = 0;  ///< tokens of its longest sample so far
  bool sourced = false;      ///< its prompt stands in prompt_tokens_by_source
  std::vector<sample_progress> samples;
};

double seconds(micros duration) {
  return static_cast<double>(duration.raw()) * 1e-6;
}

bool is_metric_prefix(std::string_view text) {
  const auto fits = [](unsigned char c) { return c == '_' || (c < 128 && std::isalnum(c) != 0); };
  return !text.empty() && std::ranges::all_of(text, fits) && !text.starts_with("__") &&
         (text[0] < '0' || text[0] > '9');
}

// Sums are told whole. A scrape that was overtaken by a later one must not lower them.
void raise_to(prometheus::Counter& counter, std::int64_t sum) {
  const double more = static_cast<double>(sum) - counter.Value();
  if (more > 0) counter.Increment(more);
}

std::vector<prometheus::Gauge*> gauges_of(const series_maker& make) {
  std::vector<prometheus::Gauge*> gauges;
  for (const reason why : waiting_reasons::all) {
    gauges.push_back(&make.gauge("num_requests_waiting_by_reason",
                                 "Requests in the queue, by what they wait for.",
                                 {{"reason", std::string{to_string(why)}}}));
  }
  return gauges;
}

prometheus::Counter& ends_by(engine_series& of, reason why) {
  switch (why) {
    case reason::finished_eos:
    case reason::finished_stop:
      return of.stopped;
    case reason::finished_length:
    case reason::finished_kv_exhausted:
      return of.at_length;
    case reason::finished_cancelled:
      return of.aborted;
    default:
      return of.failed;
  }
}

}  // namespace

struct metrics::state {
  explicit state(metrics_options from) : options(std::move(from)) {}

  engine_series& engine(std::uint32_t replica);
  void hear_tokens(const actors::event_batch& events, double now_s);
  void hear_finish(engine_series& to, const finish_event& end, double now_s);
  void count_source(engine_series& to, live_prompt& of, std::int32_t cached) const;
  static void observe(engine_series& to, const live_prompt& of, const sample_progress& sample,
                      const finish_event& end, double now_s);

  metrics_options options;
  prometheus::Registry registry;
  /// Parallel to waiting_reasons::all.
  std::vector<prometheus::Gauge*> waiting_by_reason;
  std::vector<std::unique_ptr<engine_series>> engines;
  /// By replica; 0 before statistics told it.
  std::vector<block_count> blocks_total;
  std::unordered_map<std::uint64_t, live_prompt> live;
  prometheus::Family<prometheus::Counter>& http_requests = prometheus::BuildCounter()
                                                               .Name("http_requests_total")
                                                               .Help("Answered HTTP requests.")
                                                               .Register(registry);
  prometheus::Family<prometheus::Histogram>& http_durations =
      prometheus::BuildHistogram()
          .Name("http_request_duration_seconds")
          .Help("From a request to the start of its answer.")
          .Register(registry);
};

engine_series& metrics::state::engine(std::uint32_t replica) {
  while (engines.size() <= replica) {
    const series_maker make{
        registry,
        options.prefix,
        {{"model_name", options.model_name}, {"engine", std::to_string(engines.size())}}};
    prometheus::Labels config;
    for (const auto& [name, value] : options.cache_config) config.emplace(name, value);
    make.gauge("cache_config_info", "How the KV cache is set up.", config).Set(1);
    engines.push_back(std::make_unique<engine_series>(make, options.max_model_len));
    if (options.waiting != nullptr && engines.size() == 1) waiting_by_reason = gauges_of(make);
    blocks_total.emplace_back();
  }
  return *engines[replica];
}

void metrics::state::hear_tokens(const actors::event_batch& events, double now_s) {
  engine_series& to = engine(events.replica);
  std::int64_t generated = 0;
  std::int64_t prompts = 0;
  for (const token_event& token : events.tokens) {
    const auto found = live.find(token.request.raw());
    if (found == live.end()) continue;
    live_prompt& of = found->second;
    sample_progress& sample = of.samples.at(token.sample);
    of.replica = events.replica;
    if (sample.tokens++ == 0) {
      to.first_token.Observe(now_s - of.arrived_s);
      sample.first_token_at = events.now;
      if (token.sample == 0) prompts += of.prompt_tokens;
    } else {
      to.inter_token.Observe(now_s - sample.last_token_s);
    }
    sample.last_token_at = events.now;
    sample.last_token_s = now_s;
    of.longest = std::max(of.longest, sample.tokens);
    ++generated;
  }
  if (generated == 0) return;
  to.generation_tokens.Increment(static_cast<double>(generated));
  to.prompt_tokens.Increment(static_cast<double>(prompts));
  to.iteration_tokens.Observe(static_cast<double>(generated + prompts));
}

// Only prompts that prompt_tokens counts: the sources' sum is that total, but for
// requests under way.
void metrics::state::count_source(engine_series& to, live_prompt& of, std::int32_t cached) const {
  if (of.sourced || of.samples.front().tokens == 0) return;
  of.sourced = true;
  to.computed_tokens.Increment(of.prompt_tokens - cached);
  to.hit_tokens.Increment(cached);
  to.cached_tokens.Increment(cached);
  if (cached + 1 == of.prompt_tokens) to.recomputed_tokens.Increment();
}

void metrics::state::observe(engine_series& to, const live_prompt& of,
                             const sample_progress& sample, const finish_event& end, double now_s) {
  const std::int32_t cached = std::clamp(end.cached_tokens.raw(), 0, of.prompt_tokens);
  const double decode = seconds(sample.last_token_at - sample.first_token_at);
  to.prompt_length.Observe(of.prompt_tokens);
  to.prefill_length.Observe(of.prompt_tokens - cached);
  to.generation_length.Observe(sample.tokens);
  to.max_tokens.Observe(of.max_tokens);
  to.end_to_end.Observe(now_s - of.arrived_s);
  to.queue.Observe(of.preparation_s + seconds(end.admitted_at - end.submitted_at));
  to.prefill.Observe(seconds(sample.first_token_at - end.admitted_at));
  to.decode.Observe(decode);
  to.inference.Observe(seconds(sample.last_token_at - end.admitted_at));
  if (sample.tokens > 1) to.per_output_token.Observe(decode / (sample.tokens - 1));
}

void metrics::state::hear_finish(engine_series& to, const finish_event& end, double now_s) {
  const auto found = live.find(end.request.raw());
  if (found == live.end()) return;
  live_prompt& of = found->second;
  sample_progress& sample = of.samples.at(end.sample);
  if (is_rejection(end.why)) {
    series_maker{registry, options.prefix, {{"model_name", options.model_name}}}
        .counter("request_rejected_total", "Requests that the engine refused, by reason.",
                 {{"reason", std::string{to_string(end.why)}}})
        .Increment();
    live.erase(found);
    return;
  }
  if (!std::exchange(sample.ended, true)) {
    ends_by(to, end.why).Increment();
    if (end.cached_tokens.raw() >= 0 && end.sample == 0) {
      const std::int32_t cached = std::min(end.cached_tokens.raw(), of.prompt_tokens);
      if (options.prefix_caching) {
        to.cache_queries.Increment(of.prompt_tokens);
        to.cache_hits.Increment(cached);
      }
      count_source(to, of, cached);
    }
    if (sample.tokens > 0) observe(to, of, sample, end, now_s);
  }
  if (!end.request_done) return;
  if (of.longest > 0) {
    to.generation_length_max.Observe(of.longest);
    to.samples.Observe(static_cast<double>(of.samples.size()));
  }
  live.erase(found);
}

metrics::metrics(metrics_options options) {
  if (!is_metric_prefix(options.prefix)) {
    throw input_error("metrics-prefix: given \"" + options.prefix +
                      "\"; allowed are letters, digits and _, not beginning with a digit or __");
  }
  state_ = std::make_unique<state>(std::move(options));
  state_->engine(0);
}

metrics::~metrics() = default;

void metrics::started(const generation& of) {
  for (std::size_t p = 0; p < of.ids.size(); ++p) {
    live_prompt prompt;
    prompt.arrived_s = of.times.arrived_s;
    prompt.preparation_s = of.times.preparation_s;
    prompt.prompt_tokens = static_cast<std::int32_t>(of.prompts[p].tokens->size());
    prompt.max_tokens = of.prompts[p].max_tokens.raw();
    prompt.samples.resize(static_cast<std::size_t>(of.request.n));
    state_->live.emplace(of.ids[p].raw(), std::move(prompt));
  }
}

void metrics::heard(const actors::event_batch& events, double now_s) {
  engine_series& to = state_->engine(events.replica);
  state_->hear_tokens(events, now_s);
  for (const finish_event& end : events.finishes) state_->hear_finish(to, end, now_s);
  to.running.Set(static_cast<double>(events.running));
  to.waiting.Set(static_cast<double>(events.waiting));
  const block_count total = state_->blocks_total[events.replica];
  if (total > block_count{0}) {
    to.kv_usage.Set(static_cast<double>(events.blocks_used.raw()) / total.raw());
  }
}

void metrics::failed(const generation& of) {
  for (const request_id id : of.ids) {
    const auto found = state_->live.find(id.raw());
    if (found == state_->live.end()) continue;
    live_prompt& prompt = found->second;
    engine_series& to = state_->engine(prompt.replica);
    // How much of it was cached, nobody will tell.
    state_->count_source(to, prompt, 0);
    const auto left = std::ranges::count(prompt.samples, false, &sample_progress::ended);
    to.failed.Increment(static_cast<double>(left));
    state_->live.erase(found);
  }
}

void metrics::answered(std::string_view handler, std::string_view method, int status,
                       double seconds) {
  const prometheus::Labels labels{{"handler", std::string{handler}},
                                  {"method", std::string{method}}};
  prometheus::Labels counted = labels;
  counted.emplace("status", std::to_string(status / 100) + "xx");
  state_->http_requests.Add(counted).Increment();
  state_->http_durations.Add(labels, std::vector<double>{.1, .5, 1}).Observe(seconds);
}

std::string metrics::text(const actors::statistics_list& statistics) {
  for (std::uint32_t replica = 0; replica < statistics.size(); ++replica) {
    const scheduler_statistics& now = statistics[replica];
    engine_series& to = state_->engine(replica);
    to.running.Set(static_cast<double>(now.running));
    to.waiting.Set(static_cast<double>(now.waiting));
    raise_to(to.preemptions, now.preemptions);
    state_->blocks_total[replica] = now.blocks_total;
    if (now.blocks_total > block_count{0}) {
      to.kv_usage.Set(static_cast<double>(now.blocks_used.raw()) / now.blocks_total.raw());
    }
  }
  for (std::size_t i = 0; i < state_->waiting_by_reason.size(); ++i) {
    const std::int64_t count = state_->options.waiting->count(waiting_reasons::all[i]);
    state_->waiting_by_reason[i]->Set(static_cast<double>(count));
  }
  std::ostringstream out;
  out.imbue(std::locale::classic());
  prometheus::TextSerializer{}.Serialize(out, state_->registry.Collect());
  return std::move(out).str();
}

}  // namespace octavo::gateway
