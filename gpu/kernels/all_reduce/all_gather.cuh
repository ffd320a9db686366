// The kernel of all_gather.hpp: each thread reads of every rank what the thread of the
// same number there brought.
#pragma once

#include "gpu/kernels/all_reduce/all_gather.hpp"
#include "gpu/kernels/all_reduce/peers.cuh"

namespace octavo::gpu {

struct all_gather_arguments {
  peer_memory peers;
  std::size_t count;
  const float* input;
  float* output;
  std::size_t output_stride;
};

inline constexpr int all_gather_threads = 512;

template <int count>
__device__ void copy_share(const float* from, float* to, std::size_t elements) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x * count;
  std::size_t at = (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x) * count;
  for (; at < elements; at += step) {
    float x[count];
    load_elements(from + at, x);
    store_elements(to + at, x);
  }
}

/// `count` divides the elements of a part and the strides.
template <int count, class Meeting = peer_meeting>
__global__ void __launch_bounds__(all_gather_threads) all_gather_parts(all_gather_arguments a) {
  const peer_memory& peers = a.peers;
  const int call = peers.next_call();
  const int slot = call & 1;
  copy_share<count>(a.input, peers.brought<float>(peers.rank, slot), a.count);
  Meeting::wait(peers, 0, call);
  peers.count_call(call);
  for (int r = 0; r < peers.ranks; ++r) {
    copy_share<count>(peers.brought<float>(r, slot), a.output + r * a.output_stride, a.count);
  }
}

}  // namespace octavo::gpu
