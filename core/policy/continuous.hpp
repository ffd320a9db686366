// Continuous batching (Yu et al., "Orca", OSDI 2022) as vLLM V1 schedules it:
// every step first serves the sequences that run, then lets waiting ones in
// while budget, seats and memory last. No prefill and decode phases exist: each
// sequence just moves toward its known tokens, in chunks where allowed.
#pragma once

#include "core/policy/policy.hpp"

namespace octavo {

class continuous_policy final : public policy {
 public:
  std::int32_t begin(tick& t) const override {
    run_with_preemption(t);
    return candidates_for_free_seats(t);
  }
  void finish(tick& t, std::span<const admission_candidate> candidates) const override {
    admit_in_order(t, candidates, false);
  }
};

}  // namespace octavo
