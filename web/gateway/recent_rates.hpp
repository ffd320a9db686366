// What the page shows of the last seconds.
#pragma once

#include <algorithm>
#include <deque>
#include <utility>

#include "actors/messages.hpp"

namespace octavo::gateway {

class recent_rates {
 public:
  void heard(const actors::event_batch& events, double now_s) {
    forget(now_s);
    if (!events.tokens.empty()) {
      tokens_.emplace_back(now_s, events.tokens.size());
      sum_ += events.tokens.size();
    }
    for (const finish_event& end : events.finishes) {
      if (end.sample != 0 || end.cached_tokens.raw() < 0) continue;
      ends_.emplace_back(end.cached_tokens.raw() > 0);
      if (ends_.size() > ends_kept) ends_.pop_front();
    }
  }
  [[nodiscard]] double tokens_per_s(double now_s) {
    forget(now_s);
    return static_cast<double>(sum_) / window_s;
  }
  /// Share of the last requests that found a cached prefix, 0 … 1.
  [[nodiscard]] double prefix_hit_rate() const {
    if (ends_.empty()) return 0;
    return static_cast<double>(std::ranges::count(ends_, true)) / static_cast<double>(ends_.size());
  }

 private:
  static constexpr double window_s = 2;
  static constexpr std::size_t ends_kept = 1000;

  void forget(double now_s) {
    while (!tokens_.empty() && tokens_.front().first < now_s - window_s) {
      sum_ -= tokens_.front().second;
      tokens_.pop_front();
    }
  }

  std::deque<std::pair<double, std::size_t>> tokens_;
  std::size_t sum_ = 0;
  std::deque<bool> ends_;
};

}  // namespace octavo::gateway
