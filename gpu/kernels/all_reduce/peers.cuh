// What kernels that exchange rows between ranks share: how a rank's memory is laid out,
// and how blocks of the same number meet.
//
// A rank's memory holds flags, the number of calls so far, and two slots, which calls take
// by turns: a slot is written again two calls later, when every rank has begun the call
// between and so has ended the one that read it. Calls are counted by the device, so that
// a captured launch can be launched again.
#pragma once

#include "gpu/kernels/all_reduce/peer_group.hpp"
#include "gpu/kernels/common/block.cuh"

namespace octavo::gpu {

/// The head of a rank's memory. Flags hold the number of the call.
struct peer_flags {
  int arrived[2][peer_blocks_max][peer_ranks_max];
  int calls[peer_blocks_max];
};
static_assert(sizeof(peer_flags) % 16 == 0);

struct peer_memory {
  peer_flags* flags[peer_ranks_max];
  std::size_t part_bytes;  // of a slot, which has two
  int ranks;
  int rank;
  const int* abandoned;  // or null

  /// What a rank brings.
  template <class X>
  __device__ X* brought(int of_rank, int slot) const {
    return part<X>(of_rank, 2 * slot);
  }
  /// What it has summed.
  template <class X>
  __device__ X* summed(int of_rank, int slot) const {
    return part<X>(of_rank, 2 * slot + 1);
  }
  /// The number of this block's call.
  __device__ int next_call() const {
    const auto last = static_cast<unsigned>(load_global(&flags[rank]->calls[blockIdx.x]));
    return static_cast<int>(last + 1);
  }
  /// To be called once the block has met its peers. Blocks that take no part in a call
  /// count it too.
  __device__ void count_call(int call) const {
    if (threadIdx.x != 0) return;
    store_global(&flags[rank]->calls[blockIdx.x], call);
    if (blockIdx.x != 0) return;
    for (int block = gridDim.x; block < peer_blocks_max; ++block) {
      store_global(&flags[rank]->calls[block], call);
    }
  }

 private:
  template <class X>
  __device__ X* part(int of_rank, int number) const {
    auto* base = reinterpret_cast<unsigned char*>(flags[of_rank] + 1);
    return reinterpret_cast<X*>(base + number * part_bytes);
  }
};

/// Gives up on a rank that does not come: longer than loading or translating kernels for the
/// first time may keep it. The emulator has a limit of its own.
inline constexpr std::uint64_t peer_wait_ns_max = 120'000'000'000;

/// How blocks of the same number meet. Tests replace it to see that it is needed.
struct peer_meeting {
  static __device__ void wait(const peer_memory& m, int phase, int call) {
    __syncthreads();
    const int peer = static_cast<int>(threadIdx.x);
    if (peer < m.ranks) {
      store_release_system(&m.flags[peer]->arrived[phase][blockIdx.x][m.rank], call);
      const int* flag = &m.flags[m.rank]->arrived[phase][blockIdx.x][peer];
      const std::uint64_t begin = clock_ns();
      for (unsigned spins = 1; !has_come(flag, call); ++spins) {
        if (spins % 64 == 0 && gives_up(m, begin)) break;
        spin_pause();
      }
    }
    __syncthreads();
  }

 private:
  /// A peer is one call ahead at most; numbers wrap around, within days of serving.
  static __device__ bool has_come(const int* flag, int call) {
    const auto come = static_cast<unsigned>(load_acquire_system(flag));
    return come - static_cast<unsigned>(call) <= 1;
  }

  /// The flag lies on the host: it is read now and then only.
  static __device__ bool gives_up(const peer_memory& m, [[maybe_unused]] std::uint64_t begin) {
    if (m.abandoned != nullptr && load_acquire_system(m.abandoned) != 0) return true;
#if defined(__CUDACC__)
    if (clock_ns() - begin > peer_wait_ns_max) __trap();
#endif
    return false;
  }
};

}  // namespace octavo::gpu
