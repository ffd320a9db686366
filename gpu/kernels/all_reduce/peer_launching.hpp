// What launchers of kernels between ranks share. For .cu files.
#pragma once

#include <string>

#include "gpu/kernels/all_reduce/peers.cuh"
#include "gpu/kernels/common/launching.hpp"

namespace octavo::gpu {

/// Bytes of a slot's part for a payload: whole vectors.
inline std::size_t rounded_payload(std::size_t bytes) {
  return (bytes + 15) / 16 * 16;
}

/// Throws input_error where the group cannot be used, or cannot take `payload` bytes.
inline void check_peers(const peer_group& g, std::size_t payload, const char* kernel) {
  require_range(g.ranks, 1, peer_ranks_max, kernel, "ranks");
  require_range(g.rank, 0, g.ranks - 1, kernel, "rank");
  require_range(g.blocks, 1, peer_blocks_max, kernel, "blocks");
  for (int r = 0; r < g.ranks; ++r) {
    require_pointer(g.memory[r], kernel, "memory");
    require_field(aligned_to(16, {g.memory[r]}), kernel, "memory", "not aligned",
                  "multiples of 16");
  }
  if (payload <= g.payload_bytes) return;
  const std::string most = std::to_string(g.payload_bytes);
  require_field(false, kernel, "a rank's part in bytes", std::to_string(payload),
                ("up to " + most + ", the group's payload_bytes").c_str());
}

inline peer_memory memory_of(const peer_group& g) {
  peer_memory m{};
  for (int r = 0; r < g.ranks; ++r) m.flags[r] = static_cast<peer_flags*>(g.memory[r]);
  m.part_bytes = rounded_payload(g.payload_bytes);
  m.ranks = g.ranks;
  m.rank = g.rank;
  m.abandoned = g.abandoned;
  return m;
}

}  // namespace octavo::gpu
