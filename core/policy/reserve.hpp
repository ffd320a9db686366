// Worst case up front, as TGI and TensorRT-LLM's guaranteed mode: a request is
// let in only where prompt + max_tokens fit, and is never preempted.
#pragma once

#include "core/policy/policy.hpp"

namespace octavo {

class reserve_policy final : public policy {
 public:
  std::int32_t begin(tick& t) const override {
    run_where(t, [](const sequence&) { return true; });
    return candidates_for_free_seats(t);
  }
  void finish(tick& t, std::span<const admission_candidate> candidates) const override {
    admit_in_order(t, candidates, true);
  }
};

}  // namespace octavo
