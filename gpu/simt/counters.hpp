// What emulated kernels did, counted since reset_counters(): bytes of global
// memory, bank conflicts of shared memory, barriers.
#pragma once

#include <cstdint>

namespace octavo::gpu::simt {

struct counts {
  std::uint64_t launches = 0;
  std::uint64_t blocks = 0;
  std::uint64_t barriers = 0;     // block barriers completed
  std::uint64_t collectives = 0;  // warp-wide operations completed
  std::uint64_t matrix_products = 0;
  /// Bytes through load_global, cp_async and bulk copies; store_global.
  std::uint64_t global_bytes_read = 0;
  std::uint64_t global_bytes_written = 0;
  std::uint64_t global_atomics = 0;
  /// The same without repetition, of allocations that still live; zero unless
  /// options::count_distinct_bytes.
  std::uint64_t distinct_bytes_read = 0;
  std::uint64_t distinct_bytes_written = 0;
  /// Wavefronts that counted shared memory accesses took, and how many fewer
  /// would do without conflicts; zero unless options::count_bank_conflicts.
  std::uint64_t shared_wavefronts = 0;
  std::uint64_t bank_conflicts = 0;

  counts& operator+=(const counts& other);
};

/// Counts of all launches that have run since reset_counters().
counts counters();

void reset_counters();

}  // namespace octavo::gpu::simt
