// Device memory that matrix products need beside their operands: partial sums of
// output tiles that several blocks share, and the counters by which the last of
// these blocks knows that it is the last.
#pragma once

#include <algorithm>
#include <cstddef>

namespace octavo::gpu {

/// One workspace serves all products of a stream, one after another.
struct gemm_workspace {
  /// Scratch, 256-byte aligned; contents mean nothing between launches.
  void* data = nullptr;
  std::size_t bytes = 0;
  /// Zero before the first launch; every launch leaves zeros behind.
  int* counters = nullptr;
  int counter_count = 0;
};

/// What a launch needs of a workspace.
struct gemm_needs {
  std::size_t bytes = 0;
  int counters = 0;

  /// Grows to what both need.
  gemm_needs& operator|=(const gemm_needs& other) {
    bytes = std::max(bytes, other.bytes);
    counters = std::max(counters, other.counters);
    return *this;
  }
};

/// Throws input_error naming `kernel` and the field where the workspace is too small.
void check_workspace(const gemm_workspace& workspace, const gemm_needs& needs, const char* kernel);

}  // namespace octavo::gpu
