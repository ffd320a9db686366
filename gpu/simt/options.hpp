// How the emulator runs kernels: the order of threads, when asynchronous copies
// land, what is counted. Tests vary these to bring hidden races to light.
#pragma once

#include <cstdint>

namespace octavo::gpu::simt {

/// Which of the threads that could run goes next. `fifo` lets all warps advance
/// together, `lifo` lets one warp run as far as it can, `random` takes any.
enum class thread_order { fifo, lifo, random };

/// When a cp.async lands: at its issue, or not before its wait.
enum class copy_landing { lazy, eager };

struct options {
  thread_order order = thread_order::fifo;
  copy_landing copies = copy_landing::lazy;
  std::uint64_t seed = 1;
  /// OS threads that blocks of a launch are spread over.
  int threads = 1;
  /// Counts distinct bytes of global memory beside all bytes: a bit for each byte.
  bool count_distinct_bytes = false;
  /// Counts wavefronts of load_shared, store_shared and ldmatrix.
  bool count_bank_conflicts = false;
  /// A kernel whose threads all spin for longer than this has failed.
  double spin_seconds_max = 20;
};

/// The options of launches from now on, for the whole process. Change them only
/// while no stream has work. OCTAVO_SIMT_THREADS sets the first value of `threads`.
options& current_options();

}  // namespace octavo::gpu::simt
