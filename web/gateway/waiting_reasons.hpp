// Why requests wait, counted by the scheduler's own reasons, from its thread to the
// gateway's.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "core/decision_record.hpp"

namespace octavo::gateway {

class waiting_reasons final : public decision_observer {
 public:
  /// For what a request in the queue can wait.
  static constexpr std::array all{reason::no_budget,         reason::batch_full,
                                  reason::no_free_blocks,    reason::watermark_hold,
                                  reason::preemption_hold,   reason::behind_head,
                                  reason::waiting_for_batch, reason::static_batch_running};

  void on_record(const decision_record& record) override;
  /// Requests that waited for it after the last decision. Any thread.
  [[nodiscard]] std::int64_t count(reason why) const { return counts_[index(why)].load(); }

 private:
  static constexpr std::size_t index(reason why) { return static_cast<std::size_t>(why); }

  std::array<std::atomic<std::int64_t>, reason_count> counts_{};
};

}  // namespace octavo::gateway
