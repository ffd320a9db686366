// Rows of the embedding table for token ids.
#pragma once

#include "gpu/runtime/stream.hpp"
#include "gpu/types.hpp"

namespace octavo::gpu {

/// output[i] = table[ids[i] - begin] * scale; zeros for ids outside [begin, end), so
/// that ranks which share the vocabulary sum to the whole.
struct embedding_params {
  dtype type = dtype::bfloat16;  ///< float16 or bfloat16: of the table
  int rows = 0;
  int width = 0;
  const int* ids = nullptr;  ///< [rows]
  /// [rows], or null: where sources[i] is not negative, the id is chosen[sources[i]], a token
  /// that the device chose and the host does not know yet.
  const int* sources = nullptr;
  const int* chosen = nullptr;
  const void* table = nullptr;  ///< [end - begin, width]
  int begin = 0;
  int end = 0;
  float scale = 1;
  void* output = nullptr;              ///< [rows, width]
  dtype output_type = dtype::float32;  ///< float32 (the residual stream) or `type`
};

/// Throws input_error naming the field that cannot be used.
void embed(const embedding_params& params, stream& s);

}  // namespace octavo::gpu
