// The communicator that suits the ranks' devices.
#pragma once

#include <memory>
#include <vector>

#include "gpu/executor/communicator.hpp"

namespace octavo::gpu {

/// NCCL's where it can be used, else, emulated, or where sums must be taken in rank
/// order whatever their size (batch_invariant), event_communicator. `devices[r]` is rank
/// r's. Throws input_error for more ranks than event_communicator takes, device_error
/// where NCCL fails to set up.
[[nodiscard]] std::unique_ptr<communicator> make_communicator(const std::vector<int>& devices,
                                                              bool batch_invariant);

}  // namespace octavo::gpu
