// What the ranks of a tensor-parallel group say to each other. Each rank's thread makes
// the same calls in the same order.
#pragma once

#include <cstddef>

#include "gpu/runtime/stream.hpp"
#include "gpu/types.hpp"

namespace octavo::gpu {

class communicator {
 public:
  virtual ~communicator() = default;

  /// output [count] of `type` = the sum of all ranks' float `partial` [count], the same
  /// bits on every rank. Partials must alternate between two buffers: those of the sum before
  /// may still be read by others.
  virtual void sum(stream& on, int rank, const float* partial, std::size_t count, dtype type,
                   void* output) = 0;
  /// output [ranks, count] = all ranks' float `part` [count], by rank.
  virtual void gather(stream& on, int rank, const float* part, std::size_t count,
                      float* output) = 0;

  /// Must ranks' devices read each other's memory?
  [[nodiscard]] virtual bool reads_peers() const = 0;

  /// Ends the waiting of all ranks, now and later, with a device_error: one of them failed.
  virtual void abandon() = 0;
};

}  // namespace octavo::gpu
