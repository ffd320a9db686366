// One step in the making: the snapshot that a policy sees and the only moves it
// can make. A move takes effect at once on the blocks' ledger and on the plan,
// and leaves its reason in the record, so a policy is a short function that
// reads like its rule.
//
// Everything is public data over plain structs: a test builds a few sequences,
// a ledger and a tick by hand, calls the policy and reads the plan.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "core/block_ledger.hpp"
#include "core/config.hpp"
#include "core/decision_record.hpp"
#include "core/request.hpp"
#include "core/step.hpp"
#include "core/units.hpp"

namespace octavo {

/// A waiting sequence under consideration, with the blocks it would start on.
struct admission_candidate {
  sequence* who = nullptr;
  std::span<const block_id> hits;
};

/// Tokens of a candidate that are in the cache already.
[[nodiscard]] inline token_count hit_tokens(const admission_candidate& candidate,
                                            token_count block_size) {
  return token_count{static_cast<std::int32_t>(candidate.hits.size()) * block_size.raw()};
}

/// Rows of block tables: the one given back last is given out first.
class slot_pool {
 public:
  [[nodiscard]] std::uint32_t take() {
    if (free_.empty()) return next_++;
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void push_back(std::uint32_t slot) { free_.push_back(slot); }

 private:
  std::vector<std::uint32_t> free_;
  std::uint32_t next_ = 0;
};

class tick {
 public:
  tick(const engine_config& config, block_ledger& ledger, std::vector<sequence*>& running,
       slot_pool& slots, step& plan, decision_record& record);

  // ---- the snapshot
  const engine_config& config;
  block_ledger& ledger;
  std::vector<sequence*>& running;
  slot_pool& free_slots;
  micros now;
  bool draining = false;
  /// Requests that wait, considered or not.
  std::size_t waiting = 0;
  /// When the oldest considered request was submitted.
  micros oldest_submitted_at;
  token_count budget;
  /// Candidates worth a look in this step, seats and budget apart.
  std::int32_t candidates_max = std::numeric_limits<std::int32_t>::max();

  // ---- what a policy asks
  /// Tokens that a running sequence can use now, within budget and threshold.
  [[nodiscard]] token_count wanted(const sequence& s) const;
  /// Sequences that run, those that forks will add included.
  [[nodiscard]] std::int32_t seats_taken() const { return seats_taken_; }
  [[nodiscard]] std::int32_t seats_free() const { return config.max_num_seqs - seats_taken_; }
  /// A sequence's tokens end, rounded to the room it must reserve; 0: none.
  [[nodiscard]] token_count reservation(const sequence& s, bool worst_case) const;
  [[nodiscard]] bool fits(const sequence& s, token_count count) const;
  /// With `count` more tokens even the whole pool could not hold it.
  [[nodiscard]] bool outgrows_pool(const sequence& s, token_count count) const;
  /// Tokens that a waiting sequence with `hit` tokens in the cache would run
  /// first, were the budget untouched by others before it.
  [[nodiscard]] token_count first_tokens(const sequence& s, token_count hit) const;
  /// Whom to preempt so that `requester` can run: the least urgent, and of
  /// those the youngest, which may be the requester itself. Those that have
  /// reserved their room are spared.
  [[nodiscard]] sequence& victim_for(sequence& requester) const;
  [[nodiscard]] bool preempted_any() const { return !record_.preempted.empty(); }
  [[nodiscard]] bool scheduled_any() const { return !plan_.work.empty(); }

  // ---- the moves
  /// Computes `count` tokens of a running sequence. Precondition: fits().
  void run(sequence& s, token_count count, token_count padding = token_count{0});
  /// A place in a static batch that computes only padding.
  void run_padding(sequence& s);
  /// Takes a running sequence's blocks back; what it was given in this step is
  /// refunded.
  void preempt(sequence& victim, const sequence& requester);
  /// Ends a sequence, running or waiting, that can never grow.
  void exhaust(sequence& s);
  /// Lets a waiting sequence in: it starts on its hits, with room for
  /// `reserved` tokens where that is not 0.
  void admit(const admission_candidate& candidate, token_count reserved);
  /// Leaves a waiting sequence where it is, and says why.
  void hold(const sequence& s, reason why, std::int64_t a = 0, std::int64_t b = 0);
  /// Lets nobody in, and says why of the head of the queue.
  void close(reason why, std::int64_t a = 0, std::int64_t b = 0) { closed = {{}, why, a, b}; }
  /// Asks for a tick at `moment` if nothing happens before.
  void wake_at(micros moment) { wake = moment; }

  // ---- what the scheduler reads back
  std::optional<held_record> closed;
  std::optional<micros> wake;
  std::vector<sequence*> preempted;
  std::vector<sequence*> admitted;
  std::vector<sequence*> exhausted;

 private:
  [[nodiscard]] sequence_work work_of(const sequence& s) const;
  void refund(sequence& s);
  void give_back(sequence& s);

  step& plan_;
  decision_record& record_;
  std::int32_t seats_taken_ = 0;
};

[[nodiscard]] inline sequence_name name_of(const sequence& s) {
  return {s.id, s.sample};
}

}  // namespace octavo
