// The communicator that suits the ranks' devices.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "gpu/executor/communicator.hpp"

namespace octavo::gpu {

/// peer_communicator where all devices reach each other's memory, with NCCL for sums of
/// more than a few megabytes; NCCL alone where they do not, or are many and not linked; where
/// ranks share a device, event_communicator. NCCL is left out where it cannot be used, and
/// where sums must be taken in rank order whatever their size (batch_invariant).
///
/// `devices[r]` is rank r's; a sum has at most `sum_bytes_max` of float32. Throws input_error
/// for more ranks than can be, device_error where devices or NCCL fail to set up.
[[nodiscard]] std::unique_ptr<communicator> make_communicator(const std::vector<int>& devices,
                                                              std::size_t sum_bytes_max,
                                                              bool batch_invariant);

}  // namespace octavo::gpu
