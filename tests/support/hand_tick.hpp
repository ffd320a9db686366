// A tick set up by hand, to try a policy on a few sequences and read its plan.
//
//   hand_tick h{config};
//   sequence& a = h.runs(1, {.prompt = 8, .output = 1, .computed = 8});
//   sequence& b = h.waits(2, {.prompt = 20});
//   h.decide(policy_kind::continuous);
//   CHECK(h.ran(a) == 1);
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/policy/policy.hpp"

namespace octavo::test {

struct hand_sequence {
  std::int32_t prompt = 4;
  std::int32_t output = 0;
  std::int32_t computed = 0;
  std::int32_t max_tokens = 100;
  std::int32_t priority = 0;
  std::int32_t preemptions = 0;
  std::int32_t reserved = 0;
  std::int32_t in_flight = 0;
};

class hand_tick {
 public:
  explicit hand_tick(const engine_config& c) : config(c), ledger(config) { plan.id = step_id{1}; }

  sequence& runs(std::uint64_t id, const hand_sequence& from) {
    sequence& s = make(id, from);
    s.state = sequence_state::running;
    s.slot = slots.take();
    s.computed_tokens = token_count{from.computed};
    s.steps_in_flight = from.in_flight;
    s.pending_tokens = token_count{from.in_flight};
    s.reserved_tokens = token_count{from.reserved};
    ledger.grow(s.account, std::max(s.computed_tokens, s.reserved_tokens), token_count{0});
    running.push_back(&s);
    return s;
  }
  sequence& waits(std::uint64_t id, const hand_sequence& from, std::vector<block_id> hits = {}) {
    sequence& s = make(id, from);
    s.submitted_at = oldest;
    hits_.emplace_back(std::move(hits));
    waiting.push_back({&s, hits_.back()});
    return s;
  }
  /// Takes blocks from the free ones as if somebody outside the tick held them.
  void occupy(std::int32_t blocks) {
    ledger.grow(outside_, token_count{blocks * config.block_size.raw()}, token_count{0});
  }

  void decide(policy_kind kind) {
    const auto rule = make_policy(kind);
    config.policy = kind;
    t.emplace(config, ledger, running, slots, plan, record);
    t->now = now;
    t->draining = draining;
    t->waiting = waiting.size();
    t->oldest_submitted_at = oldest;
    wanted = rule->begin(*t);
    const auto count = std::min<std::size_t>(static_cast<std::size_t>(wanted), waiting.size());
    rule->finish(*t, std::span{waiting}.first(count));
  }

  /// Tokens that a sequence runs in the plan; -1: not in it.
  [[nodiscard]] std::int32_t ran(const sequence& s) const {
    for (const sequence_work& work : plan.work) {
      if (work.sequence == s.index) return work.count.raw();
    }
    return -1;
  }
  [[nodiscard]] std::vector<std::uint64_t> order() const {
    std::vector<std::uint64_t> ids;
    for (const sequence_work& work : plan.work) ids.push_back(work.request.raw());
    return ids;
  }
  [[nodiscard]] std::optional<held_record> held(const sequence& s) const {
    for (const held_record& h : record.held) {
      if (h.who == name_of(s)) return h;
    }
    return std::nullopt;
  }

  engine_config config;
  block_ledger ledger;
  slot_pool slots;
  std::vector<sequence*> running;
  std::vector<admission_candidate> waiting;
  step plan;
  decision_record record;
  std::optional<tick> t;
  micros now;
  micros oldest;
  bool draining = false;
  std::int32_t wanted = 0;

 private:
  sequence& make(std::uint64_t id, const hand_sequence& from) {
    sequence& s = all_.emplace_back();
    s.id = request_id{id};
    s.index = static_cast<std::uint32_t>(all_.size() - 1);
    s.arrival = id;
    s.prompt_tokens = token_count{from.prompt};
    s.output_tokens = token_count{from.output};
    s.end_tokens = token_count{from.prompt + from.max_tokens};
    s.priority = from.priority;
    s.preemptions = from.preemptions;
    return s;
  }

  std::deque<sequence> all_;
  std::deque<std::vector<block_id>> hits_;
  block_account outside_;
};

/// Blocks of 4 tokens, 8 tokens a step unless said otherwise.
[[nodiscard]] inline engine_config hand_config(std::int32_t blocks, std::int32_t budget = 8) {
  engine_config config;
  config.block_size = token_count{4};
  config.num_blocks = block_count{blocks};
  config.max_num_batched_tokens = token_count{budget};
  config.max_num_seqs = 4;
  config.max_model_len = token_count{200};
  return config;
}

[[nodiscard]] inline held_record held_as(const sequence& s, reason why, std::int64_t a = 0,
                                         std::int64_t b = 0) {
  return {name_of(s), why, a, b};
}

}  // namespace octavo::test
