// What Prometheus scrapes: vLLM's metrics under their names, labels and buckets, so that
// boards and gateways made for vLLM work, and a few of our own.
//
//   metrics counts{{.model_name = "m", .max_model_len = 4096}};
//   counts.started(generation);          // before its prompts go to the engine
//   counts.heard(events, now_s);         // all that the engine tells, before anyone acts on it
//   counts.failed(generation);           // ends without the engine's word
//   counts.text(statistics);             // the text of GET /metrics
//
// A request here is one sample of one prompt, as in vLLM; its prompt counts once. Requests
// are followed by the engine's events alone, also after their client has left. Refused
// requests never ran: only `request_rejected_total` counts them.
//
// Times: TTFT, ITL and E2E are the front end's, from the request's arrival before
// tokenizing. Queue = submitted to first admission, prefill = admission to first token,
// decode = first to last token, inference = admission to last token, TPOT = decode / (tokens
// - 1): all by the scheduler's clock. Never mixed in one difference. Queue has the front end's
// time of preparing added to it.
//
// Lives on the network thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/messages.hpp"
#include "web/gateway/generation.hpp"
#include "web/gateway/waiting_reasons.hpp"

namespace octavo::gateway {

struct metrics_options {
  /// The metrics' names start with it and a colon: letters, digits and _, no digit first.
  std::string prefix = "vllm";
  /// Label `model_name`.
  std::string model_name;
  /// Tokens; the last of the buckets 1, 2, 5, 10 … is not above it.
  std::int32_t max_model_len = 1;
  /// Whether prompts are looked up in a prefix cache.
  bool prefix_caching = true;
  /// Labels of cache_config_info, such as {"block_size", "16"}.
  std::vector<std::pair<std::string, std::string>> cache_config = {};
  /// Outlives the metrics; null where nobody tells why requests wait.
  const waiting_reasons* waiting = nullptr;
};

class metrics {
 public:
  /// Throws input_error for a prefix that no metric's name can have.
  explicit metrics(metrics_options options);
  ~metrics();
  metrics(const metrics&) = delete;
  metrics& operator=(const metrics&) = delete;

  /// `of` has its ids, prompts and arrival time.
  void started(const generation& of);
  /// Tokens, ends and gauges. `now_s` is of the clock of request_times.
  void heard(const actors::event_batch& events, double now_s);
  /// What of `of` has not ended by the engine's word ends in an error.
  void failed(const generation& of);
  /// A request's answer began with `status` after `seconds`. `handler` is a route or
  /// "none": one of a fixed set, never a client's text. Statuses are counted as "2xx" ….
  void answered(std::string_view handler, std::string_view method, int status, double seconds);

  /// Prometheus' text form 0.0.4, with the gauges and sums of `statistics` (by replica;
  /// empty where the engine did not answer: then the gauges are those last heard).
  [[nodiscard]] std::string text(const actors::statistics_list& statistics);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace octavo::gateway
