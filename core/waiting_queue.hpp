// The waiting queue in one of its orders. All operations cost O(log waiting),
// so a step's cost does not grow with the queue.
//
//   fcfs            by order of submission; the preempted keep their place
//   priority        by (priority, order of submission)
//   shortest_first  by (tokens to compute, order of submission)
#pragma once

#include <cstdint>
#include <set>

#include "core/config.hpp"
#include "core/request.hpp"
#include "core/units.hpp"

namespace octavo {

class waiting_queue {
 public:
  struct entry {
    std::int64_t rank = 0;
    std::uint64_t arrival = 0;
    std::uint32_t sample = 0;
    std::uint32_t sequence = 0;

    friend auto operator<=>(const entry&, const entry&) = default;
  };
  using const_iterator = std::set<entry>::const_iterator;

  explicit waiting_queue(ordering_kind ordering) : ordering_(ordering) {}

  /// The place is fixed at insertion, also if the sequence changes meanwhile.
  void insert(sequence& s) {
    s.queued = true;
    s.queue_tokens = s.known_tokens();
    s.queue_rank = rank_of(s);
    entries_.insert(entry_of(s));
    tokens_ += s.queue_tokens.raw();
  }
  void erase(sequence& s) {
    entries_.erase(entry_of(s));
    tokens_ -= s.queue_tokens.raw();
    s.queued = false;
  }

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  /// Σ known tokens of those that wait.
  [[nodiscard]] std::int64_t tokens() const { return tokens_; }
  [[nodiscard]] const_iterator begin() const { return entries_.begin(); }
  [[nodiscard]] const_iterator end() const { return entries_.end(); }

 private:
  [[nodiscard]] std::int64_t rank_of(const sequence& s) const {
    if (ordering_ == ordering_kind::priority) return s.priority;
    if (ordering_ == ordering_kind::shortest_first) return s.known_tokens().raw();
    return 0;
  }
  [[nodiscard]] static entry entry_of(const sequence& s) {
    return {s.queue_rank, s.arrival, s.sample, s.index};
  }

  ordering_kind ordering_;
  std::set<entry> entries_;
  std::int64_t tokens_ = 0;
};

}  // namespace octavo
