// A communicator over memory that all ranks can read: hosts meet, the devices order
// themselves by events, and each rank adds up for itself, in rank order. Exact and simple;
// for ranks that share a device, where kernels must not wait for each other.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "gpu/executor/communicator.hpp"
#include "gpu/runtime/stream.hpp"

namespace octavo::gpu {

class event_communicator final : public communicator {
 public:
  /// Throws input_error for more ranks than a kernel can read.
  explicit event_communicator(int ranks);

  void sum(stream& on, int rank, const partial_rows& partial, dtype type, void* output) override;
  void gather(stream& on, int rank, const float* part, std::size_t count, float* output) override;
  [[nodiscard]] bool capturable() const override { return false; }
  [[nodiscard]] bool reads_peers() const override { return true; }
  void abandon() override;

 private:
  struct member {
    const float* part = nullptr;
    /// Recorded in turn: one may still be waited for while the next is recorded.
    std::array<event, 2> ready;
  };

  /// All ranks' parts, ready for what is queued on `on` from now.
  std::vector<const float*> meet(stream& on, int rank, const float* part);
  void wait_for_all(std::unique_lock<std::mutex>& lock);

  std::vector<member> members_;
  std::vector<std::uint64_t> calls_;  ///< by rank
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  std::uint64_t meetings_ = 0;
};

}  // namespace octavo::gpu
