// Why: the closed list of reasons that a decision can have, each with one
// sentence. The decision log, explain, metrics labels, the timeline and the
// tests all use this list.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace octavo {

enum class reason : std::uint8_t {
  // A waiting request was let in.
  admitted,
  prefix_hit,
  resumed,
  // It ran, but with fewer tokens than it had left.
  chunked_to_budget,
  // It was considered and must wait.
  no_budget,
  batch_full,
  no_free_blocks,
  watermark_hold,
  preemption_hold,
  behind_head,
  waiting_for_batch,
  static_batch_running,
  // It had to give its blocks back.
  preempted_for,
  // It has ended.
  finished_eos,
  finished_stop,
  finished_length,
  finished_kv_exhausted,
  finished_cancelled,
  finished_error,
  finished_executor_failed,
  rejected_never_fits,
  rejected_too_long,
  rejected_queue_full,
  rejected_draining,
  rejected_invalid,
  // The router chose a replica.
  routed,
};

inline constexpr std::uint8_t reason_count = static_cast<std::uint8_t>(reason::routed) + 1;

/// The stable name: "no_free_blocks", "finished{eos}" ….
[[nodiscard]] std::string_view to_string(reason why);

/// One sentence for a person; `a` and `b` are the reason's numbers as the
/// decision record documents them (blocks needed and free, a request's id …).
[[nodiscard]] std::string sentence(reason why, std::int64_t a, std::int64_t b);

[[nodiscard]] constexpr bool is_finish(reason why) {
  return why >= reason::finished_eos && why <= reason::rejected_invalid;
}
[[nodiscard]] constexpr bool is_rejection(reason why) {
  return why >= reason::rejected_never_fits && why <= reason::rejected_invalid;
}

}  // namespace octavo
