// Names, labels and buckets as vLLM's: see metrics_series.hpp.
#include "web/gateway/metrics_series.hpp"

namespace octavo::gateway {
namespace {

const std::vector<double> samples_buckets{1, 2, 5, 10, 20};
const std::vector<double> iteration_buckets{1,   8,    16,   32,   64,   128,  256,
                                            512, 1024, 2048, 4096, 8192, 16384};
const std::vector<double> first_token_buckets{.001, .005, .01, .02, .04, .06, .08, .1,
                                              .25,  .5,   .75, 1,   2.5, 5,   7.5, 10,
                                              20,   40,   80,  160, 640, 2560};
const std::vector<double> token_buckets{.01, .025, .05, .075, .1,  .15, .2, .3, .4, .5,
                                        .75, 1,    2.5, 5,    7.5, 10,  20, 40, 80};
const std::vector<double> request_buckets{.3, .5, .8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                          30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};

}  // namespace

prometheus::Labels series_maker::with(const prometheus::Labels& more) const {
  prometheus::Labels all = labels_;
  all.insert(more.begin(), more.end());
  return all;
}

prometheus::Counter& series_maker::counter(const std::string& name, const std::string& help,
                                           const prometheus::Labels& more) const {
  return prometheus::BuildCounter()
      .Name(prefix_ + ":" + name)
      .Help(help)
      .Register(registry_)
      .Add(with(more));
}

prometheus::Gauge& series_maker::gauge(const std::string& name, const std::string& help,
                                       const prometheus::Labels& more) const {
  return prometheus::BuildGauge()
      .Name(prefix_ + ":" + name)
      .Help(help)
      .Register(registry_)
      .Add(with(more));
}

prometheus::Histogram& series_maker::histogram(const std::string& name, const std::string& help,
                                               const std::vector<double>& buckets) const {
  return prometheus::BuildHistogram()
      .Name(prefix_ + ":" + name)
      .Help(help)
      .Register(registry_)
      .Add(labels_, buckets);
}

std::vector<double> one_two_five_buckets(std::int32_t max) {
  std::vector<double> buckets;
  for (std::int64_t unit = 1; unit <= max; unit *= 10) {
    for (const std::int64_t bound : {unit, 2 * unit, 5 * unit}) {
      if (bound <= max) buckets.push_back(static_cast<double>(bound));
    }
  }
  return buckets;
}

engine_counts::engine_counts(const series_maker& make)
    : running(make.gauge("num_requests_running", "Sequences that are being computed.")),
      waiting(make.gauge("num_requests_waiting", "Sequences in the queue.")),
      kv_usage(make.gauge("kv_cache_usage_perc", "Share of KV blocks in use; 1 is all.")),
      preemptions(make.counter("num_preemptions_total",
                               "Times that a sequence had to give its KV blocks back.")),
      cache_queries(make.counter("prefix_cache_queries_total",
                                 "Prompt tokens looked up in the prefix cache.")),
      cache_hits(
          make.counter("prefix_cache_hits_total", "Prompt tokens found in the prefix cache.")),
      prompt_tokens(make.counter("prompt_tokens_total", "Prompt tokens whose KV is there.")),
      generation_tokens(make.counter("generation_tokens_total", "Generated tokens.")),
      computed_tokens(make.counter("prompt_tokens_by_source_total",
                                   "Prompt tokens of ended requests, by where KV came from.",
                                   {{"source", "local_compute"}})),
      hit_tokens(make.counter("prompt_tokens_by_source_total",
                              "Prompt tokens of ended requests, by where KV came from.",
                              {{"source", "local_cache_hit"}})),
      cached_tokens(make.counter("prompt_tokens_cached_total",
                                 "Prompt tokens of ended requests that were not computed.")),
      recomputed_tokens(
          make.counter("prompt_tokens_recomputed_total",
                       "Last tokens of prompts that were computed though all else was cached.")),
      stopped(
          make.counter("request_success_total", "Ended requests.", {{"finished_reason", "stop"}})),
      at_length(make.counter("request_success_total", "Ended requests.",
                             {{"finished_reason", "length"}})),
      aborted(
          make.counter("request_success_total", "Ended requests.", {{"finished_reason", "abort"}})),
      failed(make.counter("request_success_total", "Ended requests.",
                          {{"finished_reason", "error"}})) {}

engine_lengths::engine_lengths(const series_maker& make, std::int32_t max_model_len)
    : prompt_length(make.histogram("request_prompt_tokens", "Tokens of a request's prompt.",
                                   one_two_five_buckets(max_model_len))),
      generation_length(make.histogram("request_generation_tokens",
                                       "Tokens generated for a request.",
                                       one_two_five_buckets(max_model_len))),
      generation_length_max(make.histogram("request_max_num_generation_tokens",
                                           "Tokens of a prompt's longest sample.",
                                           one_two_five_buckets(max_model_len))),
      max_tokens(make.histogram("request_params_max_tokens", "Limits of tokens to generate.",
                                one_two_five_buckets(max_model_len))),
      prefill_length(make.histogram("request_prefill_kv_computed_tokens",
                                    "Prompt tokens computed for a request; hits left out.",
                                    one_two_five_buckets(max_model_len))),
      samples(make.histogram("request_params_n", "Samples asked for a prompt.", samples_buckets)),
      iteration_tokens(make.histogram("iteration_tokens_total",
                                      "Tokens of a step: generated, and prompts completed.",
                                      iteration_buckets)) {}

engine_times::engine_times(const series_maker& make)
    : first_token(make.histogram("time_to_first_token_seconds",
                                 "From arrival to the first token, queueing included.",
                                 first_token_buckets)),
      inter_token(make.histogram("inter_token_latency_seconds",
                                 "Between a sample's token and the one before.", token_buckets)),
      per_output_token(make.histogram("request_time_per_output_token_seconds",
                                      "Mean time between a request's tokens.", token_buckets)),
      end_to_end(make.histogram("e2e_request_latency_seconds", "From arrival to the end.",
                                request_buckets)),
      queue(make.histogram("request_queue_time_seconds", "In the queue before the first step.",
                           request_buckets)),
      inference(make.histogram("request_inference_time_seconds",
                               "From the first step to the last token.", request_buckets)),
      prefill(make.histogram("request_prefill_time_seconds",
                             "From the first step to the first token.", request_buckets)),
      decode(make.histogram("request_decode_time_seconds", "From the first token to the last.",
                            request_buckets)) {}

}  // namespace octavo::gateway
