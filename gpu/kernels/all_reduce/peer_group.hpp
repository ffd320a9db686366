// The ranks of an exchange over memory that all of them reach, for all_reduce.hpp and
// all_gather.hpp.
//
// Ranks wait for each other through flags. Each rank runs its launches on a stream and
// thread of its own; all ranks must make the same calls, in the same order, with the same
// sizes, types and algorithm. Launches may be captured, and launched again as a graph. A
// rank that waits two minutes for another stops its kernel with an error.
#pragma once

#include <cstddef>

#include "gpu/runtime/stream.hpp"
#include "gpu/types.hpp"

namespace octavo::gpu {

inline constexpr int peer_ranks_max = 8;
inline constexpr int peer_blocks_max = 64;

/// The ranks and their shared memory; the same on all ranks but for `rank`.
struct peer_group {
  int ranks = 1;
  int rank = 0;
  /// Most blocks of a launch; they must all fit on the device at once.
  int blocks = 32;
  /// Most that each rank brings to one call.
  std::size_t payload_bytes = 0;
  /// Of each rank: peer_memory_bytes(payload_bytes) on its device, 16-byte aligned,
  /// reached by all, and zero before any rank's first call.
  void* memory[peer_ranks_max] = {};
  /// In pinned memory, or null: once it is not 0, nobody waits for anybody any more, and
  /// what calls leave is of no use.
  const int* abandoned = nullptr;
};

std::size_t peer_memory_bytes(std::size_t payload_bytes);

}  // namespace octavo::gpu
