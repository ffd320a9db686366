// Copies the rows that are wanted: those of the hidden states that need logits.
#pragma once

#include <cstddef>

#include "gpu/runtime/stream.hpp"

namespace octavo::gpu {

/// output[i] = input[ids[i]], of any element type; zeros for negative ids, with which
/// a captured graph fills rows that a step does not use.
struct row_gather_params {
  int rows = 0;
  std::size_t row_bytes = 0;    ///< of one row; even
  const int* ids = nullptr;     ///< [rows]
  const void* input = nullptr;  ///< rows of row_bytes, dense
  void* output = nullptr;       ///< [rows], dense
};

/// Throws input_error naming the field that cannot be used.
void gather_rows(const row_gather_params& params, stream& s);

}  // namespace octavo::gpu
