// A whole engine in a test: the ring, an executor that knows every text in
// advance (paged_kv.hpp) and the invariants after each step. Time moves by one
// millisecond a step.
//
//   fake_world world{config};
//   world.submit({.id = 1, .prompt = 20, .max_tokens = 4});
//   world.run();
//   CHECK(world.end_of(1).why == reason::finished_length);
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <stdexcept>
#include <vector>

#include "core/decision_log.hpp"
#include "core/ring.hpp"
#include "tests/support/invariants.hpp"
#include "tests/support/paged_kv.hpp"

namespace octavo::test {

/// How much a world tells the engine of its texts.
struct world_options {
  bool token_ids = false;    ///< prompts and results carry token ids
  bool prompt_keys = true;   ///< requests carry the keys of their prompt's blocks
  bool output_keys = false;  ///< results carry the keys of blocks they complete
  bool text_keys = false;    ///< requests carry the keys of sample 0's output too, as in a trace
};

/// Keeps a log's records in memory.
class memory_sink final : public log_sink {
 public:
  void on_entry(std::span<const std::byte> payload, const hash128&) override {
    payloads.emplace_back(payload.begin(), payload.end());
  }
  std::vector<std::vector<std::byte>> payloads;
};

/// Keeps every decision record.
class record_keeper final : public decision_observer {
 public:
  void on_record(const decision_record& record) override { records.push_back(record); }
  std::vector<decision_record> records;
};

class fake_world {
 public:
  explicit fake_world(const engine_config& config, world_options options = {})
      : log(to_json(config)),
        engine(config, log),
        options_(options),
        kv_(config),
        invariants_(engine) {
    log.set_sink(&sink);
  }

  // ---- commands; inputs take effect at the next step boundary
  void submit(const fake_request& r) {
    kv_.add(r);
    invariants_.on_submit(request_id{r.id}, token_count{r.prompt});
    inputs_.push_back({input_kind::submit, r, r.id});
    at_boundary(false);
  }
  void cancel(std::uint64_t id) {
    inputs_.push_back({input_kind::cancel, {}, id});
    at_boundary(false);
  }
  void drain() {
    inputs_.push_back({input_kind::drain, {}, 0});
    at_boundary(false);
  }
  void advance_clock(std::int64_t us) { now_ += micros{us}; }
  /// Moves the clock to the engine's wake, where it wants one.
  bool wake() {
    const auto moment = engine.scheduler.wake();
    if (!moment || !flight_.empty()) return false;
    now_ = std::max(now_, *moment);
    engine.scheduler.on_wake(now_);
    settle();
    return true;
  }
  /// Completes the oldest step. Bit j of `stops` ends the step's j-th sample.
  bool complete(std::uint64_t stops = 0, step_status status = step_status::ok) {
    if (flight_.empty()) return false;
    const step_ptr done = flight_.front();
    flight_.pop_front();
    now_ += micros{1000};
    if (!done->work.empty()) ++steps;
    answer(*done, stops, status);
    kv_.execute(*done);
    engine.scheduler.on_result(*done, now_);
    at_boundary(true);
    return true;
  }
  bool fail() { return complete(0, step_status::failed); }
  /// Steps until nothing is left to do.
  void run(std::int64_t steps_max = 1'000'000) {
    for (std::int64_t i = 0; i < steps_max; ++i) {
      if (!complete() && !wake()) return;
    }
    throw std::logic_error("the engine does not come to rest");
  }
  void check_end() { invariants_.on_end(); }

  // ---- what happened
  [[nodiscard]] const step* in_flight() const {
    return flight_.empty() ? nullptr : flight_.back().get();
  }
  [[nodiscard]] const std::vector<finish_event>& ends(std::uint64_t id) { return ends_[id]; }
  /// The end of a request with one sample. Throws where it did not end once.
  [[nodiscard]] const finish_event& end_of(std::uint64_t id) {
    if (ends_[id].size() != 1) {
      throw std::logic_error("request " + std::to_string(id) + " ended " +
                             std::to_string(ends_[id].size()) + " times");
    }
    return ends_[id].front();
  }
  /// Tokens as its client heard them; their number where ids do not exist.
  [[nodiscard]] const std::vector<token_id>& text(std::uint64_t id, std::uint16_t sample = 0) {
    return texts_[{id, sample}];
  }
  [[nodiscard]] scheduler_statistics statistics() const { return engine.scheduler.statistics(); }

  decision_log log;
  memory_sink sink;
  ring engine;
  std::int64_t steps = 0;  ///< completed, with work

 private:
  struct pending_input {
    input_kind kind = input_kind::none;
    fake_request request;
    std::uint64_t id = 0;
  };

  void at_boundary(bool result_came) {
    if (!result_came && !flight_.empty()) return;
    for (const pending_input& input : inputs_) {
      if (input.kind == input_kind::submit) {
        engine.scheduler.on_submit(spec_of(input.request), now_);
      } else if (input.kind == input_kind::cancel) {
        engine.scheduler.on_cancel(request_id{input.id}, now_);
      } else {
        engine.scheduler.on_drain(now_);
      }
    }
    inputs_.clear();
    settle();
  }

  void settle() {
    hear();
    while (step_ptr plan = engine.advance()) {
      invariants_.on_plan(*plan);
      flight_.push_back(std::move(plan));
      hear();
    }
    hear();
    invariants_.on_rest();
  }

  void hear() {
    step_events& events = engine.scheduler.events();
    for (const token_event& e : events.tokens) {
      texts_[{e.request.raw(), e.sample}].push_back(e.token);
    }
    for (const finish_event& e : events.finishes) {
      invariants_.on_finish(e);
      ends_[e.request.raw()].push_back(e);
    }
    events.clear();
  }

  void answer(step& done, std::uint64_t stops, step_status status) {
    done.result.status = status;
    if (status == step_status::failed) return;
    std::uint32_t sampled = 0;
    for (std::uint32_t i = 0; i < done.work.size(); ++i) {
      const sequence_work& work = done.work[i];
      const fake_request& r = kv_.request(work.request);
      const std::int32_t position = work.first_position.raw() + work.count.raw();
      for (std::uint16_t k = 0; k < work.samples; ++k, ++sampled) {
        const std::uint16_t sample = work.samples > 1 ? k : work.sample;
        if (options_.token_ids) done.result.tokens.push_back(token_at(r, sample, position));
        const bool stops_now = (stops >> (sampled % 64) & 1) != 0;
        if (position - r.prompt + 1 >= r.output) {
          done.result.finishes.push_back({i, k, finish_kind::eos});
        } else if (stops_now) {
          done.result.finishes.push_back({i, k, finish_kind::stop_token});
        }
        const std::int32_t width = engine.scheduler.config().block_size.raw();
        if (options_.output_keys && (position + 1) % width == 0) {
          done.result.output_keys.emplace_back(i, keys_of(r, sample, position + 1).back());
        }
      }
    }
  }

  [[nodiscard]] std::vector<block_key> keys_of(const fake_request& r, std::uint32_t sample,
                                               std::int32_t tokens) const {
    const block_hasher hasher{{7, 11}};
    block_key key = hasher.root({.adapter_digest = r.adapter, .cache_salt = r.salt});
    std::vector<block_key> keys;
    std::vector<token_id> block;
    for (std::int32_t p = 0; p < tokens; ++p) {
      block.push_back(token_at(r, sample, p));
      if (std::ssize(block) < engine.scheduler.config().block_size.raw()) continue;
      keys.push_back(key = hasher.chain(key, block));
      block.clear();
    }
    return keys;
  }

  [[nodiscard]] request_spec spec_of(const fake_request& r) const {
    request_spec spec;
    spec.id = request_id{r.id};
    spec.prompt_tokens = token_count{r.prompt};
    spec.max_tokens = token_count{r.max_tokens};
    spec.priority = r.priority;
    spec.n = r.n;
    if (options_.prompt_keys) spec.keys = keys_of(r, 0, r.prompt);
    if (options_.text_keys) spec.keys = keys_of(r, 0, r.prompt + std::max(0, r.max_tokens));
    if (options_.token_ids) {
      auto prompt = std::make_shared<std::vector<token_id>>();
      for (std::int32_t p = 0; p < r.prompt; ++p) prompt->push_back(token_at(r, 0, p));
      spec.prompt = std::move(prompt);
    }
    return spec;
  }

  world_options options_;
  paged_kv kv_;
  invariants invariants_;
  micros now_;
  std::deque<step_ptr> flight_;
  std::vector<pending_input> inputs_;
  std::map<std::uint64_t, std::vector<finish_event>> ends_;
  std::map<std::pair<std::uint64_t, std::uint16_t>, std::vector<token_id>> texts_;
};

}  // namespace octavo::test
