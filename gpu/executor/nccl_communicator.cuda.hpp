// A communicator over NCCL, which is opened when first needed and need not be there to
// build with. Sums are the same bits on every rank, in an order that is NCCL's own and
// may change with their size.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gpu/executor/communicator.hpp"

namespace octavo::gpu {

/// Why NCCL cannot be used; empty where it can.
[[nodiscard]] const std::string& nccl_problem();

class nccl_communicator final : public communicator {
 public:
  /// Joins the devices, one rank each, and connects them. Throws device_error.
  explicit nccl_communicator(const std::vector<int>& devices);
  ~nccl_communicator() override;
  nccl_communicator(const nccl_communicator&) = delete;
  nccl_communicator& operator=(const nccl_communicator&) = delete;

  void sum(stream& on, int rank, const partial_rows& partial, dtype type, void* output) override;
  void gather(stream& on, int rank, const float* part, std::size_t count, float* output) override;
  [[nodiscard]] bool capturable() const override { return true; }
  [[nodiscard]] bool reads_peers() const override { return false; }
  void let_pass(bool all) override { pass_ = all; }
  void abandon() override;

 private:
  struct member {
    void* handle = nullptr;  ///< ncclComm_t
    int device = 0;
    std::timed_mutex mutex;  ///< held while work is queued: an abort must not come between
  };

  void connect();
  /// The rank's member, in working order; throws device_error where it is not.
  member& working(int rank);

  std::vector<std::unique_ptr<member>> members_;
  bool pass_ = false;
};

}  // namespace octavo::gpu
