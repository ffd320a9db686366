// The emulator has no NCCL, and its ranks may share a device: see make_communicator.hpp.
#include "gpu/executor/make_communicator.hpp"
#include "gpu/executor/peer_communicator.hpp"

namespace octavo::gpu {

std::unique_ptr<communicator> make_communicator(const std::vector<int>& devices,
                                                std::size_t sum_bytes_max, bool) {
  return std::make_unique<peer_communicator>(devices, sum_bytes_max);
}

}  // namespace octavo::gpu
