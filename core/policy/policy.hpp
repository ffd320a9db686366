// A policy decides one step: who runs, who is let in, who must give way. It is
// a function of the tick it is given and keeps nothing between ticks.
//
// A tick has two halves because the second may need an answer from the prefix
// cache: begin() does what needs no knowledge of prefixes and says how many
// waiting sequences it wants to consider; finish() gets them, in queue order,
// with the cached blocks each would start on.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/config.hpp"
#include "core/tick.hpp"

namespace octavo {

class policy {
 public:
  virtual ~policy() = default;

  /// The first half. Returns the number of candidates wanted, 0 for none.
  virtual std::int32_t begin(tick& t) const = 0;
  /// The second half, also called when there are no candidates.
  virtual void finish(tick& t, std::span<const admission_candidate> candidates) const = 0;
};

[[nodiscard]] std::unique_ptr<policy> make_policy(policy_kind kind);

// ---- moves that several policies share

/// Runs every running sequence in order of admission while budget lasts. A
/// sequence that cannot grow preempts the least urgent, perhaps itself.
void run_with_preemption(tick& t);

/// Runs a sequence where it fits; where even the whole pool would not hold it,
/// ends it. Returns false where it has left the list of those that run.
bool run_or_exhaust(tick& t, sequence& s, token_count count);

/// Runs, without preemption, those that `wants` accepts.
template <class Predicate>
void run_where(tick& t, Predicate wants) {
  std::size_t at = 0;
  while (at < t.running.size() && t.budget > token_count{0}) {
    sequence& s = *t.running[at];
    const token_count count = t.wanted(s);
    const bool tries = count > token_count{0} && wants(s);
    if (!tries || run_or_exhaust(t, s, count)) ++at;
  }
}

/// Lets candidates in, in order, up to the first that must wait; its reason is
/// recorded. `worst_case` reserves room for all that a request may generate.
void admit_in_order(tick& t, std::span<const admission_candidate> candidates, bool worst_case);

/// How many candidates the free seats and the budget left are good for; where
/// that is none, closes the tick with the reason.
[[nodiscard]] std::int32_t candidates_for_free_seats(tick& t);

/// Blocks that must be free to let a candidate in with `count` tokens at once.
[[nodiscard]] block_count admission_need(const tick& t, const admission_candidate& candidate,
                                         token_count count, token_count reserved);

}  // namespace octavo
