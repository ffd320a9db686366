// The kernel of all_reduce.hpp. Block b of every rank takes rows b, b + blocks, ..., so
// that only blocks of the same number wait for each other.
//
// A rank's memory holds flags, the number of calls each block has seen, and two slots,
// which calls take by turns: a slot is written again two calls later, when every rank
// has begun the call between and so has ended the one that read it.
#pragma once

#include "gpu/kernels/all_reduce/all_reduce.hpp"
#include "gpu/kernels/rms_norm/rms_norm.cuh"

namespace octavo::gpu {

/// The head of a rank's memory. Flags hold the number of the call.
struct peer_flags {
  int arrived[2][all_reduce_blocks_max][all_reduce_ranks_max];
  int calls[all_reduce_blocks_max];
};
static_assert(sizeof(peer_flags) % 16 == 0);

template <class X, class T, class W>
struct all_reduce_arguments {
  peer_flags* flags[all_reduce_ranks_max];
  std::size_t payload_elements;  // of a slot's part
  int ranks;
  int rank;
  int rows;
  const X* input;
  X* sum;                // without a residual
  norm_row<T, W> first;  // of row 0

  __device__ X* part(int of_rank, int slot, int which) const {
    X* base = reinterpret_cast<X*>(flags[of_rank] + 1);
    return base + (slot * 2 + which) * payload_elements;
  }
  /// What a rank brings, and what it has summed.
  __device__ X* brought(int of_rank, int slot) const { return part(of_rank, slot, 0); }
  __device__ X* summed(int of_rank, int slot) const { return part(of_rank, slot, 1); }
};

/// Gives up on a rank that does not come: about half a minute on a device. The emulator
/// has a limit of its own.
inline constexpr int peer_spins_max = 1 << 29;

/// How blocks of the same number meet. Tests replace it to see that it is needed.
struct peer_meeting {
  static __device__ void wait(peer_flags* const* flags, int ranks, int rank, int phase, int call) {
    __syncthreads();
    const int peer = static_cast<int>(threadIdx.x);
    if (peer < ranks) {
      store_release_system(&flags[peer]->arrived[phase][blockIdx.x][rank], call);
      const int* flag = &flags[rank]->arrived[phase][blockIdx.x][peer];
      // Numbers wrap around.
      for (int spins = 0; load_acquire_system(flag) - call < 0; ++spins) {
        spin_pause();
#if defined(__CUDACC__)
        if (spins == peer_spins_max) __trap();
#endif
      }
    }
    __syncthreads();
  }
};

template <int count, class X>
__device__ void copy_row(const X* from, X* to, int width) {
  for (int column = static_cast<int>(threadIdx.x) * count; column < width;
       column += static_cast<int>(blockDim.x) * count) {
    float x[count];
    load_elements(from + column, x);
    store_elements(to + column, x);
  }
}

/// The ranks' parts of a row, added in the order of ranks and rounded to X.
template <int count, class X, class T, class W>
struct summed_parts {
  const all_reduce_arguments<X, T, W>& a;
  std::size_t at;  // of the row
  int slot;

  __device__ void operator()(int column, float (&sum)[count]) const {
    load_elements(a.brought(0, slot) + at + column, sum);
    for (int r = 1; r < a.ranks; ++r) {
      float x[count];
      load_elements(a.brought(r, slot) + at + column, x);
      for (int i = 0; i < count; ++i) sum[i] += x[i];
    }
    for (int i = 0; i < count; ++i) sum[i] = static_cast<float>(static_cast<X>(sum[i]));
  }
};

template <int count, class X, class Source>
__device__ void write_row(X* to, int width, const Source& source) {
  for (int column = static_cast<int>(threadIdx.x) * count; column < width;
       column += static_cast<int>(blockDim.x) * count) {
    float x[count];
    source(column, x);
    store_elements(to + column, x);
  }
}

template <int count, class X, class T, class W, class Source>
__device__ void finish_row(const all_reduce_arguments<X, T, W>& a, std::size_t row,
                           const Source& source, unsigned char* shared) {
  if (a.first.residual == nullptr) {
    write_row<count>(a.sum + row * a.first.width, a.first.width, source);
  } else {
    norm_one_row<count>(row_at(a.first, row, row), source, shared);
  }
}

template <bool two_shot, int count, class X, class T, class W, class Meeting = peer_meeting>
__global__ void __launch_bounds__(512) all_reduce_rows(all_reduce_arguments<X, T, W> a) {
  OCTAVO_SHARED(shared);
  const int block = static_cast<int>(blockIdx.x);
  const int blocks = static_cast<int>(gridDim.x);
  const int width = a.first.width;
  const int call = load_global(&a.flags[a.rank]->calls[block]) + 1;
  const int slot = call & 1;
  for (int row = block; row < a.rows; row += blocks) {
    const std::size_t at = static_cast<std::size_t>(row) * width;
    copy_row<count>(a.input + at, a.brought(a.rank, slot) + at, width);
  }
  Meeting::wait(a.flags, a.ranks, a.rank, 0, call);
  if (threadIdx.x == 0) store_global(&a.flags[a.rank]->calls[block], call);
  if constexpr (two_shot) {
    for (int row = block; row < a.rows; row += blocks) {
      if ((row / blocks + block) % a.ranks != a.rank) continue;
      const std::size_t at = static_cast<std::size_t>(row) * width;
      write_row<count>(a.summed(a.rank, slot) + at, width,
                       summed_parts<count, X, T, W>{a, at, slot});
    }
    Meeting::wait(a.flags, a.ranks, a.rank, 1, call);
  }
  for (int row = block; row < a.rows; row += blocks) {
    const std::size_t at = static_cast<std::size_t>(row) * width;
    if constexpr (two_shot) {
      const X* from = a.summed((row / blocks + block) % a.ranks, slot) + at;
      const auto source = [from](int column, float(&x)[count]) { load_elements(from + column, x); };
      finish_row<count>(a, static_cast<std::size_t>(row), source, shared);
    } else {
      finish_row<count>(a, static_cast<std::size_t>(row), summed_parts<count, X, T, W>{a, at, slot},
                        shared);
    }
  }
}

}  // namespace octavo::gpu
