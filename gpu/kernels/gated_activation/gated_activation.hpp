// The gated activation between an MLP's products. Shazeer, "GLU Variants Improve
// Transformer" (arXiv 2002.05202).
#pragma once

#include "gpu/runtime/stream.hpp"
#include "gpu/types.hpp"

namespace octavo::gpu {

enum class gate_function {
  silu,       ///< x / (1 + e^-x)
  gelu_tanh,  ///< GELU in its form with tanh
};

/// output[i] = f(gate[i]) * up[i] for each row i.
struct gated_activation_params {
  dtype type = dtype::bfloat16;  ///< float16 or bfloat16
  gate_function function = gate_function::silu;
  int rows = 0;
  int width = 0;
  const void* gate = nullptr;  ///< [rows, width], rows `stride` elements apart
  const void* up = nullptr;    ///< the same; gate + width where rows are [gate | up]
  int stride = 0;              ///< at least width; 2 * width where rows are [gate | up]
  void* output = nullptr;      ///< [rows, width], dense; may be gate where stride is width
};

/// Throws input_error naming the field that cannot be used.
void gated_activation(const gated_activation_params& params, stream& s);

}  // namespace octavo::gpu
