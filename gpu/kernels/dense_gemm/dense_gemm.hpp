// Products of 16-bit activations with 16-bit weights: output = x w^T (+ bias), sums in
// float.
//
// Two ways behind one call. The vendor's library (cuBLASLt), fastest where there is a
// device; and a kernel of our own, whose sums have an order that depends on nothing but
// the weight's shape: for batch-invariant mode, and for the emulator, which has no
// library.
#pragma once

#include "gpu/kernels/dense_gemm/gemm_workspace.hpp"
#include "gpu/runtime/stream.hpp"
#include "gpu/types.hpp"

namespace octavo::gpu {

struct dense_product {
  const void* activations = nullptr;  ///< [tokens, inputs] of `type`
  const void* weights = nullptr;      ///< [outputs, inputs] of `type`
  const void* bias = nullptr;         ///< [outputs] of `type`, or null
  void* output = nullptr;             ///< [tokens, output_stride] of `output_type`
  int output_stride = 0;              ///< at least outputs; 0: outputs
  int tokens = 0;
  int outputs = 0;
  int inputs = 0;                       ///< a multiple of 8
  dtype type = dtype::bfloat16;         ///< float16 or bfloat16
  dtype output_type = dtype::bfloat16;  ///< `type` or float32
  gemm_workspace workspace;
  int multiprocessors = 0;
  /// Every row's result is the same bit for bit, whatever other rows there are.
  bool batch_invariant = false;
  /// May the library do it? It never does in batch-invariant mode, nor emulated.
  bool allow_library = true;
};

/// What dense_gemm needs of its workspace.
[[nodiscard]] gemm_needs dense_gemm_needs(const dense_product& product);

/// Queues the product; can be captured in a graph. Throws input_error naming the
/// field that does not fit, device_error where the library refuses.
void dense_gemm(stream& on, const dense_product& product);

}  // namespace octavo::gpu
