// All ranks' parts side by side on every rank, over memory that all ranks reach.
#pragma once

#include <cstddef>

#include "gpu/kernels/all_reduce/peer_group.hpp"
#include "gpu/runtime/stream.hpp"

namespace octavo::gpu {

/// output[r * output_stride + i] = rank r's input[i], for i < count.
struct all_gather_params {
  std::size_t count = 0;         ///< 4 * count bytes at most the group's payload_bytes
  const float* input = nullptr;  ///< of any memory
  float* output = nullptr;
  std::size_t output_stride = 0;  ///< from one rank's part to the next: `count` or more
};

/// Throws input_error naming the field that cannot be used.
void all_gather(const peer_group& group, const all_gather_params& params, stream& s);

}  // namespace octavo::gpu
