// What communicators have in common: see communicator.hpp.
#include "gpu/executor/communicator.hpp"

#include "gpu/runtime/device.hpp"

namespace octavo::gpu {

void communicator::sum_and_norm(stream& on, int rank, const partial_rows& partial,
                                rms_norm_params p, void* branch) {
  sum(on, rank, partial, p.type, branch);
  p.input = branch;
  rms_norm(p, on);
}

void communicator::require_working() const {
  if (!abandoned_) return;
  throw device_error("communicator", current_device(), "another rank failed", "");
}

}  // namespace octavo::gpu
