// A communicator of kernels that read the other ranks' memory and wait for them on the
// device (gpu/kernels/all_reduce): the host waits for nobody, so that steps can be
// captured. Sums are taken in rank order in float32, in rows of a fixed cut: their bits,
// and those of the norm behind, are the same whatever the number of rows.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "gpu/executor/communicator.hpp"
#include "gpu/kernels/all_reduce/all_reduce.hpp"
#include "gpu/runtime/memory.hpp"

namespace octavo::gpu {

class peer_communicator final : public communicator {
 public:
  /// `devices[r]` is rank r's. An exchange takes `payload_bytes`, at least a row of
  /// float32; what is more goes to `larger`, or takes several exchanges where there is
  /// none. Throws input_error for more ranks than a kernel can read.
  peer_communicator(const std::vector<int>& devices, std::size_t payload_bytes,
                    std::unique_ptr<communicator> larger = nullptr);

  void sum(stream& on, int rank, const partial_rows& partial, dtype type, void* output) override;
  void sum_and_norm(stream& on, int rank, const partial_rows& partial, rms_norm_params p,
                    void* branch) override;
  void gather(stream& on, int rank, const float* part, std::size_t count, float* output) override;
  [[nodiscard]] bool capturable() const override {
    return larger_ == nullptr || larger_->capturable();
  }
  [[nodiscard]] bool reads_peers() const override { return true; }
  void let_pass(bool all) override;
  void abandon() override;

 private:
  [[nodiscard]] bool takes(std::size_t floats) const {
    return larger_ == nullptr || floats * sizeof(float) <= group_.payload_bytes;
  }
  [[nodiscard]] peer_group group_of(int rank) const;
  void reduce(stream& on, int rank, all_reduce_params p) const;

  peer_group group_;
  std::vector<device_array<std::byte>> memory_;  ///< by rank
  pinned_array<int> ends_waiting_;               ///< not 0: nobody waits
  std::unique_ptr<communicator> larger_;
};

}  // namespace octavo::gpu
