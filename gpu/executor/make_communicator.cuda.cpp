// NCCL where it is found: see make_communicator.hpp.
#include <set>

#include "gpu/executor/event_communicator.hpp"
#include "gpu/executor/make_communicator.hpp"
#include "gpu/executor/nccl_communicator.cuda.hpp"

namespace octavo::gpu {

std::unique_ptr<communicator> make_communicator(const std::vector<int>& devices,
                                                bool batch_invariant) {
  // NCCL takes one rank a device.
  const bool all_differ = std::set<int>(devices.begin(), devices.end()).size() == devices.size();
  if (!batch_invariant && all_differ && nccl_problem().empty()) {
    return std::make_unique<nccl_communicator>(devices);
  }
  return std::make_unique<event_communicator>(static_cast<int>(devices.size()));
}

}  // namespace octavo::gpu
