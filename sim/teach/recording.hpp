// A small run, kept whole: its decision records, when each step ran, and what
// each request did at every moment. The timeline is drawn from this.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/decision_record.hpp"
#include "sim/world/outcome.hpp"

namespace octavo::sim::teach {

/// What a request does over a span of time.
enum class activity : std::uint8_t {
  absent,     ///< not there yet, or gone
  waiting,    ///< in the queue
  preempted,  ///< in the queue again, its KV lost
  stalled,    ///< admitted, but without a token in this step
  prefill,    ///< its prompt is computed
  decode,     ///< one token a step
  waste,      ///< padding, a place held for others, or tokens computed twice
};

struct span {
  micros from;
  micros to;
  activity what = activity::absent;
  friend bool operator==(const span&, const span&) = default;
};

/// One request's row.
struct lifeline {
  std::vector<span> spans;          ///< in order of time, without overlap
  std::vector<micros> token_times;  ///< when each of its tokens came
  std::vector<micros> hits;         ///< when it started on cached tokens
  micros rejected{-1};              ///< when it was refused; -1: it was not
};

/// When a record's step ran; `ran` is false where it computed nothing.
struct step_interval {
  micros from;
  micros to;
  bool ran = false;
};

/// Tokens computed, by what they were good for.
struct token_sums {
  std::int64_t useful = 0;
  std::int64_t padding = 0;     ///< static batching: filled up, or a held place
  std::int64_t recomputed = 0;  ///< lost by preemption before
  std::int64_t overrun = 0;     ///< planned ahead of a stop
  [[nodiscard]] std::int64_t wasted() const { return padding + recomputed + overrun; }
  [[nodiscard]] std::int64_t all() const { return useful + wasted(); }
};

/// Keeps the records of one replica, up to a bound.
class recorder final : public decision_observer {
 public:
  explicit recorder(std::size_t steps_max) : steps_max_(steps_max) {}
  void on_record(const decision_record& record) override;

  [[nodiscard]] const std::vector<decision_record>& records() const { return records_; }
  /// Steps heard of that computed something, those beyond the bound included.
  [[nodiscard]] std::size_t steps() const { return steps_; }

 private:
  std::size_t steps_max_;
  std::size_t steps_ = 0;
  std::vector<decision_record> records_;
};

struct recording {
  std::vector<decision_record> records;
  std::vector<step_interval> intervals;  ///< parallel to `records`
  std::vector<lifeline> lives;           ///< by request number
  token_sums tokens;
  /// Time that requests waited, added up, by why the head of the queue waited.
  std::map<reason, std::int64_t> waited_us;
};

/// Works a run out of its records. Requests are numbered 0 … requests − 1.
[[nodiscard]] recording make_recording(std::vector<decision_record> records, std::size_t requests);

/// The entry that says why the queue's head waits; null where nobody does.
[[nodiscard]] const held_record* head_of_queue(const decision_record& record);

}  // namespace octavo::sim::teach
