// The moves that policies share: see policy.hpp.
#include "core/policy/policy.hpp"

#include <algorithm>

#include "core/policy/continuous.hpp"
#include "core/policy/prefill_first.hpp"
#include "core/policy/reserve.hpp"
#include "core/policy/static_batch.hpp"

namespace octavo {

std::unique_ptr<policy> make_policy(policy_kind kind) {
  switch (kind) {
    case policy_kind::continuous:
      return std::make_unique<continuous_policy>();
    case policy_kind::prefill_first:
      return std::make_unique<prefill_first_policy>();
    case policy_kind::reserve:
      return std::make_unique<reserve_policy>();
    case policy_kind::static_batch:
      return std::make_unique<static_batch_policy>();
  }
  return nullptr;
}

namespace {

// What is in flight may end it anyway. Returns whether it ended now.
bool exhaust_unless_in_flight(tick& t, sequence& s) {
  if (s.steps_in_flight > 0) return false;
  t.exhaust(s);
  return true;
}

// Preempts until running[at] can take `count` more tokens. Returns false where
// it cannot run in this tick; `at` follows the list as it shrinks and then
// points at the next to consider.
bool make_room(tick& t, std::size_t& at, token_count count) {
  sequence& s = *t.running[at];
  while (!t.fits(s, count)) {
    if (t.outgrows_pool(s, count)) {
      if (exhaust_unless_in_flight(t, s)) return false;
      ++at;
      return false;
    }
    sequence& victim = t.victim_for(s);
    const auto index = std::ranges::find(t.running, &victim) - t.running.begin();
    t.preempt(victim, s);
    if (&victim == &s) return false;
    if (static_cast<std::size_t>(index) < at) --at;
  }
  return true;
}

}  // namespace

bool run_or_exhaust(tick& t, sequence& s, token_count count) {
  if (t.fits(s, count)) {
    t.run(s, count);
    return true;
  }
  return !(t.outgrows_pool(s, count) && exhaust_unless_in_flight(t, s));
}

void run_with_preemption(tick& t) {
  std::size_t at = 0;
  while (at < t.running.size() && t.budget > token_count{0}) {
    sequence& s = *t.running[at];
    const token_count count = t.wanted(s);
    if (count == token_count{0}) {
      ++at;
      continue;
    }
    if (!make_room(t, at, count)) continue;
    t.run(s, count);
    ++at;
  }
}

block_count admission_need(const tick& t, const admission_candidate& candidate, token_count count,
                           token_count reserved) {
  const engine_config& c = t.config;
  const token_count hit = hit_tokens(candidate, c.block_size);
  token_count hold = hit + count;
  if (c.scheduler_reserve_full_isl) hold = candidate.who->known_tokens();
  const block_count need = reserved > token_count{0}
                               ? blocks_held(c, std::max(hold, reserved), token_count{0})
                               : blocks_peak(c, hold, count);
  const block_count owned{static_cast<std::int32_t>(candidate.hits.size())};
  return need - owned + t.ledger.unheld(candidate.hits);
}

std::int32_t candidates_for_free_seats(tick& t) {
  if (t.preempted_any()) {
    t.close(reason::preemption_hold, std::ssize(t.preempted));
    return 0;
  }
  if (t.budget == token_count{0}) {
    t.close(reason::no_budget);
    return 0;
  }
  if (t.seats_free() <= 0) {
    t.close(reason::batch_full, t.seats_taken(), t.config.max_num_seqs);
    return 0;
  }
  return std::min({t.seats_free(), t.budget.raw(), t.candidates_max});
}

namespace {

// Why a candidate with `need` blocks must wait, or nothing.
std::optional<held_record> memory_obstacle(const tick& t, block_count need) {
  const block_count free = t.ledger.free();
  if (need > free) return held_record{{}, reason::no_free_blocks, need.raw(), free.raw()};
  if (!t.running.empty() && free - need < t.config.watermark) {
    return held_record{{}, reason::watermark_hold, need.raw(), free.raw()};
  }
  return std::nullopt;
}

// Tokens of a candidate's first step; 0 where it must wait for more budget.
token_count first_tokens(const tick& t, const admission_candidate& candidate) {
  const token_count hit = hit_tokens(candidate, t.config.block_size);
  const token_count count = t.first_tokens(*candidate.who, hit);
  if (count > t.budget && !t.config.enable_chunked_prefill) return token_count{0};
  return std::min(count, t.budget);
}

}  // namespace

void admit_in_order(tick& t, std::span<const admission_candidate> candidates, bool worst_case) {
  for (const admission_candidate& candidate : candidates) {
    sequence& s = *candidate.who;
    if (t.seats_free() < 1 + s.forks_wanted) {
      return t.hold(s, reason::batch_full, t.seats_taken(), t.config.max_num_seqs);
    }
    const token_count count = first_tokens(t, candidate);
    if (count == token_count{0}) return t.hold(s, reason::no_budget);
    const bool cautious = worst_case || s.preemptions >= t.config.max_preemptions;
    const token_count reserved = t.reservation(s, cautious);
    const block_count need = admission_need(t, candidate, count, reserved);
    if (const auto obstacle = memory_obstacle(t, need)) {
      // Nobody holds anything and still it does not fit: it never will.
      if (t.running.empty() && t.ledger.used() == block_count{0}) {
        t.exhaust(s);
        continue;
      }
      return t.hold(s, obstacle->why, obstacle->a, obstacle->b);
    }
    t.admit(candidate, reserved);
    t.run(s, count);
  }
}

}  // namespace octavo
