// RMS norm of rows, with the sum into the residual stream that comes before it.
//
// The residual stream is float32, as on the CPU; what goes to matrix products has
// 16 bits. Zhang and Sennrich, "Root Mean Square Layer Normalization"
// (arXiv 1910.07467).
#pragma once

#include "gpu/runtime/stream.hpp"
#include "gpu/types.hpp"

namespace octavo::gpu {

/// A row, in floats, fits the shared memory of a block of sm_89.
inline constexpr int norm_width_max = 24576;

/// For each row i: with a residual,
///   residual[i] += input[i], or norm(input[i]) * input_weight where that is given;
///   output[i] = norm(residual[i]) * weight,
/// else output[i] = norm(input[i]) * weight. norm(x) = x / sqrt(mean(x^2) + epsilon).
struct rms_norm_params {
  dtype type = dtype::bfloat16;  ///< float16 or bfloat16: of input and output
  int rows = 0;
  int width = 0;  ///< 1 to norm_width_max
  float epsilon = 0;
  const void* input = nullptr;         ///< [rows, width]; null only with a residual
  float* residual = nullptr;           ///< [rows, width], or null
  const void* input_weight = nullptr;  ///< [width], or null; needs input and residual
  const void* weight = nullptr;        ///< [width]
  dtype weight_type = dtype::float32;  ///< float32 or `type`, of both weights
  /// [rows] or null: output row i comes of row row_ids[i] of input and residual, the
  /// latter then stays as it is. Negative ids give zeros.
  const int* row_ids = nullptr;
  void* output = nullptr;  ///< [rows, width]; null only with a residual: just the sum
};

/// Throws input_error naming the field that cannot be used.
void rms_norm(const rms_norm_params& params, stream& s);

}  // namespace octavo::gpu
