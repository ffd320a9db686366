// The sum of what several ranks hold, read from their memories, in rank order: every
// rank gets the same bits. For few values; the caller sees to it that all are there.
#pragma once

#include <cstdint>

#include "gpu/runtime/stream.hpp"
#include "gpu/types.hpp"

namespace octavo::gpu {

inline constexpr int rank_sum_max = 8;

/// output[i] = ((parts[0][i] + parts[1][i]) + ...) for i < count.
struct rank_sum_params {
  int ranks = 0;  ///< 1 to rank_sum_max
  std::int64_t count = 0;
  const float* parts[rank_sum_max] = {};  ///< that this device can read
  dtype type = dtype::float32;            ///< of the output: float16, bfloat16 or float32
  void* output = nullptr;
};

/// Throws input_error naming the field that cannot be used.
void rank_sum(const rank_sum_params& params, stream& s);

}  // namespace octavo::gpu
