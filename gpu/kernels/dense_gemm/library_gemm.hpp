// The vendor's matrix products (cuBLASLt), for dense_gemm and fp8_gemm. The emulated
// flavour has none: library_gemm_available() is false there.
#pragma once

#include "gpu/kernels/dense_gemm/gemm_workspace.hpp"
#include "gpu/runtime/stream.hpp"
#include "gpu/types.hpp"

namespace octavo::gpu {

/// output [tokens, outputs] = activations [tokens, inputs] x weights [outputs, inputs]^T,
/// all row after row.
struct library_product {
  const void* activations = nullptr;
  const void* weights = nullptr;
  const void* bias = nullptr;  ///< [outputs] of output_type, or null
  void* output = nullptr;      ///< rows `output_stride` elements apart
  int output_stride = 0;       ///< at least outputs
  int tokens = 0;
  int outputs = 0;
  int inputs = 0;
  dtype type = dtype::bfloat16;  ///< of activations and weights
  dtype output_type = dtype::bfloat16;
  /// 8-bit floats only: one scale each, on the device. Null: 1.
  const float* activation_scale = nullptr;
  const float* weight_scale = nullptr;
  /// Both have a scale for each row: [tokens] and [outputs]. See library_scales_rows.
  bool row_scales = false;
  gemm_workspace workspace;
};

[[nodiscard]] bool library_gemm_available();
/// Does the library take row_scales on the current device? From version 12.9 on, on sm_90.
[[nodiscard]] bool library_scales_rows();

/// What the library gets of a workspace: enough for its split-K kernels.
inline constexpr std::size_t library_workspace_bytes = std::size_t{32} << 20;

/// Queues the product; false where the library has no kernel for it, and nothing is queued:
/// nor while `on` captures a product of a shape that did not run before. Throws device_error
/// with the library's answer.
[[nodiscard]] bool library_gemm(stream& on, const library_product& product);

}  // namespace octavo::gpu
