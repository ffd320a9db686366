// The kernel of all_reduce.hpp. Block b of every rank takes rows b, b + blocks, ..., so
// that only blocks of the same number wait for each other.
#pragma once

#include "gpu/kernels/all_reduce/all_reduce.hpp"
#include "gpu/kernels/all_reduce/peers.cuh"
#include "gpu/kernels/rms_norm/rms_norm.cuh"

namespace octavo::gpu {

template <class X, class T, class W>
struct all_reduce_arguments {
  peer_memory peers;
  int rows;
  const X* input;
  norm_row<T, W> first;  // of row 0; without a residual, output is the sum's
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
    load_elements(a.peers.template brought<X>(0, slot) + at + column, sum);
    for (int r = 1; r < a.peers.ranks; ++r) {
      float x[count];
      load_elements(a.peers.template brought<X>(r, slot) + at + column, x);
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
    write_row<count>(a.first.output + row * a.first.width, a.first.width, source);
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
  const peer_memory& peers = a.peers;
  const int call = peers.next_call();
  const int slot = call & 1;
  for (int row = block; row < a.rows; row += blocks) {
    const std::size_t at = static_cast<std::size_t>(row) * width;
    copy_row<count>(a.input + at, peers.brought<X>(peers.rank, slot) + at, width);
  }
  Meeting::wait(peers, 0, call);
  peers.count_call(call);
  if constexpr (two_shot) {
    for (int row = block; row < a.rows; row += blocks) {
      if ((row / blocks + block) % peers.ranks != peers.rank) continue;
      const std::size_t at = static_cast<std::size_t>(row) * width;
      write_row<count>(peers.summed<X>(peers.rank, slot) + at, width,
                       summed_parts<count, X, T, W>{a, at, slot});
    }
    Meeting::wait(peers, 1, call);
  }
  for (int row = block; row < a.rows; row += blocks) {
    const std::size_t at = static_cast<std::size_t>(row) * width;
    if constexpr (two_shot) {
      const X* from = peers.summed<X>((row / blocks + block) % peers.ranks, slot) + at;
      const auto source = [from](int column, float(&x)[count]) { load_elements(from + column, x); };
      finish_row<count>(a, static_cast<std::size_t>(row), source, shared);
    } else {
      finish_row<count>(a, static_cast<std::size_t>(row), summed_parts<count, X, T, W>{a, at, slot},
                        shared);
    }
  }
}

}  // namespace octavo::gpu
