// Static batching: see static_batch.hpp.
#include "core/policy/static_batch.hpp"

#include <algorithm>

namespace octavo {
namespace {

void run_batch(tick& t) {
  run_where(t, [](const sequence&) { return true; });
  if (!t.scheduled_any()) return;  // padding alone is not worth a step
  for (sequence* s : t.running) {
    if (s->held_by_batch) t.run_padding(*s);
  }
}

// The candidates that fit together, and whether the next one would not.
struct batch_choice {
  std::size_t count = 0;
  bool next_does_not_fit = false;
  token_count longest_prompt;
};

batch_choice choose_batch(const tick& t, std::span<const admission_candidate> candidates) {
  batch_choice choice;
  block_count needed;
  for (const admission_candidate& candidate : candidates) {
    const token_count reserved = t.reservation(*candidate.who, true);
    const token_count hit = hit_tokens(candidate, t.config.block_size);
    needed += admission_need(t, candidate, candidate.who->known_tokens() - hit, reserved);
    if (needed > t.ledger.free()) {
      choice.next_does_not_fit = true;
      break;
    }
    ++choice.count;
    choice.longest_prompt = std::max(choice.longest_prompt, candidate.who->known_tokens());
  }
  return choice;
}

}  // namespace

std::int32_t static_batch_policy::begin(tick& t) const {
  if (t.running.empty()) return t.config.max_num_seqs;
  run_batch(t);
  t.close(reason::static_batch_running, static_cast<std::int64_t>(t.running.size()));
  return 0;
}

void static_batch_policy::finish(tick& t, std::span<const admission_candidate> candidates) const {
  if (candidates.empty()) return;
  const batch_choice batch = choose_batch(t, candidates);
  if (batch.count == 0) {
    // Alone in an empty pool and too large: it can never start.
    t.exhaust(*candidates.front().who);
    return;
  }
  const bool full = batch.count == static_cast<std::size_t>(t.config.max_num_seqs);
  const micros deadline = t.oldest_submitted_at + t.config.static_max_wait;
  if (!full && !batch.next_does_not_fit && !t.draining && t.now < deadline) {
    t.hold(*candidates.front().who, reason::waiting_for_batch,
           static_cast<std::int64_t>(batch.count), t.config.max_num_seqs);
    t.wake_at(deadline);
    return;
  }
  for (const admission_candidate& candidate : candidates.first(batch.count)) {
    sequence& s = *candidate.who;
    const token_count known = s.known_tokens();
    t.admit(candidate, t.reservation(s, true));
    t.run(s, s.remaining_tokens(), batch.longest_prompt - known);
  }
}

}  // namespace octavo
