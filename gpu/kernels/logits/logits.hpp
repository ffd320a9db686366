// From what the head's product gives to logits: the ranks' shares of the vocabulary
// put together, scale and soft cap.
#pragma once

#include "gpu/runtime/stream.hpp"
#include "gpu/types.hpp"

namespace octavo::gpu {

/// output[row, v] = cap(scale * input[v / shard_width, row, v % shard_width]),
/// cap(x) = soft_cap * tanh(x / soft_cap).
struct logits_params {
  dtype type = dtype::float32;  ///< float32, float16 or bfloat16: of the input
  int rows = 0;
  int vocabulary = 0;  ///< at most shards * shard_width: what is beyond is padding
  int shards = 1;      ///< as an all-gather of the ranks' outputs leaves them
  int shard_width = 0;
  const void* input = nullptr;  ///< [shards, rows, shard_width]
  float scale = 1;
  float soft_cap = 0;       ///< 0: none
  float* output = nullptr;  ///< [rows, vocabulary]; may be the input of one float shard
};

/// Throws input_error naming the field that cannot be used.
void finish_logits(const logits_params& params, stream& s);

}  // namespace octavo::gpu
