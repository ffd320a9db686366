// Prefill first, as vLLM V0 and SGLang: while somebody can be let in or has
// prompt left, a step computes prompts only; otherwise it decodes. First tokens
// come soon, running streams stall meanwhile.
#pragma once

#include "core/policy/policy.hpp"

namespace octavo {

class prefill_first_policy final : public policy {
 public:
  std::int32_t begin(tick& t) const override {
    run_where(t, [](const sequence& s) { return !s.decodes(); });
    return candidates_for_free_seats(t);
  }
  void finish(tick& t, std::span<const admission_candidate> candidates) const override {
    admit_in_order(t, candidates, false);
    if (!t.scheduled_any()) run_with_preemption(t);
  }
};

}  // namespace octavo
