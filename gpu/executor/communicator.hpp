// What the ranks of a tensor-parallel group say to each other. Each rank's thread makes
// the same calls in the same order.
#pragma once

#include <atomic>
#include <cstddef>

#include "gpu/kernels/rms_norm/rms_norm.hpp"
#include "gpu/runtime/stream.hpp"
#include "gpu/types.hpp"

namespace octavo::gpu {

/// Rows of which each rank has a part.
struct partial_rows {
  int rows = 0;
  int width = 0;
  float* values = nullptr;  ///< [rows, width], this rank's; whoever sums may write there

  [[nodiscard]] std::size_t count() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(width);
  }
};

class communicator {
 public:
  virtual ~communicator() = default;

  /// output [rows, width] of `type` = the sum of all ranks' `partial`, the same bits on
  /// every rank. Partials must alternate between two buffers: those of the sum before may
  /// still be read by others.
  virtual void sum(stream& on, int rank, const partial_rows& partial, dtype type, void* output) = 0;

  /// rms_norm() of `p` with a residual and no row_ids, its input being that sum; `branch`
  /// [rows, width] of p.type is scratch, for ranks that cannot do both at once.
  virtual void sum_and_norm(stream& on, int rank, const partial_rows& partial, rms_norm_params p,
                            void* branch);

  /// output [ranks, count] = all ranks' float `part` [count], by rank.
  virtual void gather(stream& on, int rank, const float* part, std::size_t count,
                      float* output) = 0;

  /// May a stream capture these calls? Then all ranks capture the same ones, and launch
  /// what they captured in the same order.
  [[nodiscard]] virtual bool capturable() const = 0;

  /// Must ranks' devices read each other's memory?
  [[nodiscard]] virtual bool reads_peers() const = 0;

  /// With `all`, kernels wait for no other rank, and calls leave any values: devices load a
  /// kernel when it first runs, and may wait for all that runs meanwhile, so that none may
  /// wait for a rank that is loading. Called while nothing is queued.
  virtual void let_pass(bool all) { static_cast<void>(all); }

  /// Ends the waiting of all ranks, on hosts and devices, now and later: one of them failed.
  /// What is queued already leaves any values.
  virtual void abandon() = 0;

  /// Throws device_error after abandon(), as all calls above do.
  void require_working() const;

 protected:
  std::atomic<bool> abandoned_ = false;
};

}  // namespace octavo::gpu
