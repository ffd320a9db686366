// Products of e4m3 activations with e4m3 weights, sums in float, for devices with
// 8-bit tensor cores (sm_89 on) and the emulator. Elsewhere e4m3 is a storage type:
// w8a16.
//
//   fp8_quantize(stream, …)   activations to e4m3 with a scale a token (or 128 inputs)
//   fp8_gemm(stream, …)
//
// Our own kernel multiplies whole 32 inputs on tensor cores and adds each such product,
// scaled, to float registers: the two-level sums that keep the limited accumulators of
// 8-bit tensor cores from losing small terms (DeepGEMM; DeepSeek-V3, section 3.3). The
// vendor's library does products with one scale a tensor and, from version 12.9 on and on
// sm_90, with one for each token and output.
#pragma once

#include "gpu/kernels/dense_gemm/gemm_workspace.hpp"
#include "gpu/runtime/stream.hpp"
#include "gpu/types.hpp"

namespace octavo::gpu {

/// Inputs that share a scale in block-scaled formats, and outputs of a weight.
inline constexpr int fp8_block = 128;

/// How activations are scaled.
enum class fp8_activation_scales {
  token,        ///< one a token: [tokens], made by fp8_quantize
  token_block,  ///< one a token and 128 inputs: [tokens, ceil(inputs / 128)], likewise
  fixed,        ///< one, given: [1]
};

struct fp8_quantization {
  const void* values = nullptr;  ///< [tokens, inputs] of `type`
  void* codes = nullptr;         ///< [tokens, inputs] e4m3
  /// Written, or read where `mode` is fixed.
  float* scales = nullptr;
  int tokens = 0;
  int inputs = 0;  ///< a multiple of 16
  dtype type = dtype::bfloat16;
  fp8_activation_scales mode = fp8_activation_scales::token;
};

/// scale = largest magnitude / 448, code = value / scale, saturating; a row of zeros has
/// scale 1.
void fp8_quantize(stream& on, const fp8_quantization& work);

/// How weights are scaled.
enum class fp8_weight_scales {
  tensor,   ///< [1]
  channel,  ///< [outputs]
  block,    ///< [ceil(outputs / 128), ceil(inputs / 128)]
};

struct fp8_product {
  const void* activations = nullptr;  ///< [tokens, inputs] e4m3
  const float* activation_scales = nullptr;
  fp8_activation_scales activation_mode = fp8_activation_scales::token;
  const void* weights = nullptr;  ///< [outputs, inputs] e4m3
  const float* weight_scales = nullptr;
  fp8_weight_scales weight_mode = fp8_weight_scales::tensor;
  const void* bias = nullptr;  ///< [outputs] of `type`, or null
  void* output = nullptr;      ///< [tokens, outputs] of `output_type`
  int tokens = 0;
  int outputs = 0;
  int inputs = 0;                       ///< a multiple of 16
  dtype type = dtype::bfloat16;         ///< of bias: float16 or bfloat16
  dtype output_type = dtype::bfloat16;  ///< `type` or float32
  gemm_workspace workspace;
  int multiprocessors = 0;
  bool batch_invariant = false;
  bool allow_library = true;
};

[[nodiscard]] gemm_needs fp8_gemm_needs(const fp8_product& product);

/// Queues the product; can be captured in a graph. Throws input_error naming the field
/// that does not fit: token_block goes with block, the others with tensor and channel.
void fp8_gemm(stream& on, const fp8_product& product);

}  // namespace octavo::gpu
