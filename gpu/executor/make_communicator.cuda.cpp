// Kernels that read peers, NCCL, or events: see make_communicator.hpp.
#include <algorithm>
#include <set>

#include "gpu/executor/event_communicator.hpp"
#include "gpu/executor/make_communicator.hpp"
#include "gpu/executor/nccl_communicator.cuda.hpp"
#include "gpu/executor/peer_communicator.hpp"

namespace octavo::gpu {
namespace {

/// Beyond, what NCCL has for large sums is faster.
constexpr std::size_t peer_payload_max = std::size_t{8} << 20;

/// The slowest way between any two of the devices.
peer_path slowest_path(const std::vector<int>& devices) {
  peer_path slowest = peer_path::link;
  for (const int from : devices) {
    for (const int to : devices) {
      if (from != to) slowest = std::min(slowest, path_between(from, to));
    }
  }
  return slowest;
}

}  // namespace

std::unique_ptr<communicator> make_communicator(const std::vector<int>& devices,
                                                std::size_t sum_bytes_max, bool batch_invariant) {
  // Kernels that wait for each other must run at the same time, and NCCL takes one rank a
  // device.
  if (std::set<int>(devices.begin(), devices.end()).size() < devices.size()) {
    return std::make_unique<event_communicator>(static_cast<int>(devices.size()));
  }
  std::unique_ptr<communicator> library;
  if (!batch_invariant && nccl_problem().empty()) {
    library = std::make_unique<nccl_communicator>(devices);
  }
  // Over a bus that all share, everyone's reading of everyone pays for two ranks only.
  const peer_path path = slowest_path(devices);
  const bool pays = path == peer_path::link || (path == peer_path::bus && devices.size() == 2);
  if (library != nullptr && (!pays || devices.size() > peer_ranks_max)) return library;
  return std::make_unique<peer_communicator>(devices, std::min(sum_bytes_max, peer_payload_max),
                                             std::move(library));
}

}  // namespace octavo::gpu
