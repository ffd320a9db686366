// Tests only: the engine without actors, by plain calls, around an executor, and what
// its requests hear.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/block_key.hpp"
#include "core/executor.hpp"
#include "core/ring.hpp"
#include "tests/support/catch.hpp"

namespace octavo {

struct answer {
  std::vector<token_id> tokens;
  std::string text;
  finish_event end;
  friend bool operator==(const answer& a, const answer& b) {
    return a.tokens == b.tokens && a.text == b.text && a.end.why == b.end.why;
  }
};

struct small_engine_options {
  std::int32_t batched_tokens = 512;
  std::int32_t run_ahead = 0;
};

/// An engine without actors around an executor.
class small_engine {
 public:
  small_engine(std::unique_ptr<executor> device, const small_engine_options& options)
      : executor_(std::move(device)),
        log_(to_json(config_of(options))),
        ring_(config_of(options), log_) {}

  void submit(std::uint64_t id, const std::vector<token_id>& prompt, std::int32_t max_tokens,
              const sampling_parameters& how, std::int32_t n = 1) {
    request_spec spec;
    spec.id = request_id{id};
    spec.prompt_tokens = token_count{static_cast<std::int32_t>(prompt.size())};
    spec.max_tokens = token_count{max_tokens};
    spec.prompt = std::make_shared<const std::vector<token_id>>(prompt);
    spec.n = n;
    spec.sampling = std::make_shared<const sampling_parameters>(how);
    const block_hasher hasher{{1, 2}};
    block_key key = hasher.root({});
    for (std::size_t at = 0; at + 16 <= prompt.size(); at += 16) {
      spec.keys.push_back(key = hasher.chain(key, std::span{prompt}.subspan(at, 16)));
    }
    ring_.scheduler.on_submit(std::move(spec), now_);
  }

  void run() {
    do {
      while (step_ptr plan = ring_.advance()) start(std::move(plan));
      hear();
    } while (finish_one());
  }

  [[nodiscard]] const answer& of(std::uint64_t id, std::uint16_t sample = 0) {
    return answers_[{id, sample}];
  }
  [[nodiscard]] const std::vector<token_logprobs>& logprobs_of(std::uint64_t id) {
    return logprobs_[id];
  }

 private:
  engine_config config_of(const small_engine_options& options) const {
    const executor_capabilities can = executor_->capabilities();
    engine_config config;
    config.kv_groups = can.kv_groups;
    config.enable_prefix_caching = config.kv_groups == std::vector{kv_group{}};
    config.num_blocks = can.num_blocks;
    config.max_model_len = token_count{300};
    config.max_num_batched_tokens = token_count{options.batched_tokens};
    config.max_num_seqs = std::min(16, options.batched_tokens);
    config.run_ahead = options.run_ahead;
    return config;
  }

  void start(step_ptr plan) {
    if (!plan->releases_only()) executor_->submit(plan);
    flight_.push_back(std::move(plan));
  }

  bool finish_one() {
    if (flight_.empty()) return false;
    const step_ptr done = flight_.front()->releases_only() ? flight_.front() : executor_->await();
    REQUIRE(done == flight_.front());
    flight_.pop_front();
    now_ += micros{1000};
    ring_.scheduler.on_result(*done, now_);
    return true;
  }

  void hear() {
    step_events& events = ring_.scheduler.events();
    for (const token_event& e : events.tokens) {
      answer& to = answers_[{e.request.raw(), e.sample}];
      to.tokens.push_back(e.token);
      to.text += events.text.substr(e.text_begin, e.text_size);
      if (e.logprobs >= 0) {
        logprobs_[e.request.raw()].push_back(events.logprobs[static_cast<std::size_t>(e.logprobs)]);
      }
    }
    for (const finish_event& e : events.finishes) answers_[{e.request.raw(), e.sample}].end = e;
    events.clear();
  }

  std::unique_ptr<executor> executor_;
  decision_log log_;
  ring ring_;
  std::deque<step_ptr> flight_;
  std::map<std::pair<std::uint64_t, std::uint16_t>, answer> answers_;
  std::map<std::uint64_t, std::vector<token_logprobs>> logprobs_;
  micros now_;
};

inline sampling_parameters greedy() {
  sampling_parameters how;
  how.temperature = 0;
  return how;
}
inline sampling_parameters seeded(std::int64_t seed) {
  sampling_parameters how;
  how.seed = seed;
  return how;
}

}  // namespace octavo
