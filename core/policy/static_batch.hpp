// Static batching, as before continuous batching: a batch starts when it is
// full, when the next request would not fit, when the oldest has waited
// `static_max_wait`, or when no more will come. Prompts are padded to the
// longest, and all places stay taken until the longest request ends.
#pragma once

#include "core/policy/policy.hpp"

namespace octavo {

class static_batch_policy final : public policy {
 public:
  std::int32_t begin(tick& t) const override;
  void finish(tick& t, std::span<const admission_candidate> candidates) const override;
};

}  // namespace octavo
