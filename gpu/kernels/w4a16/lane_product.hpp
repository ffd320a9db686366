// A product of activations with weights in the lane layout: what launchers of 4-bit
// and 8-bit weights take.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/kernels/dense_gemm/gemm_workspace.hpp"
#include "gpu/types.hpp"

namespace octavo::gpu {

/// A repacked weight (repack.hpp) on the device. Pointers are 16-byte aligned.
struct lane_weights {
  const void* codes = nullptr;
  const void* scales = nullptr;          ///< null: column_scales only
  const std::uint8_t* zeros = nullptr;   ///< null: the middle of the codes
  const std::int32_t* order = nullptr;   ///< null: inputs lie in their own order
  const float* column_scales = nullptr;  ///< null: none
  int column_scale_stride = 0;           ///< 0: one for all outputs, 1: each its own
  int outputs = 0;
  int inputs = 0;         ///< of the layout, a multiple of 8
  int source_inputs = 0;  ///< of the layer: the width of activations
  int group = 0;
};

/// Which kernel runs. All give the same results within rounding.
enum class lane_path {
  automatic,
  few_tokens,  ///< up to 8 tokens
  tiles,
  dense,  ///< weights written out as 16-bit numbers, then dense_gemm
};

/// From so many tokens on the dense path is expected to take less time. Writing weights out
/// and reading them back moves 4.5 bytes each, as long as 350 (A100) to 650 (H100)
/// multiplications take; in return the library reaches some 80 % of a tensor core's peak
/// where tiles that unpack codes reach 25 to 40 %.
inline constexpr int lane_dense_tokens_min = 256;

struct lane_product {
  const void* activations = nullptr;  ///< [tokens, source_inputs] of `type`
  lane_weights weights;
  const void* bias = nullptr;  ///< [outputs] of `type`, or null
  void* output = nullptr;      ///< [tokens, outputs] of `output_type`
  int tokens = 0;
  dtype type = dtype::float16;         ///< float16 or bfloat16
  dtype output_type = dtype::float16;  ///< `type` or float32
  gemm_workspace workspace;
  int multiprocessors = 0;
  /// Every row's result is the same bit for bit, whatever other rows there are.
  bool batch_invariant = false;
  lane_path path = lane_path::automatic;
  /// Of the automatic path; it is never dense in batch-invariant mode.
  int dense_tokens_min = lane_dense_tokens_min;
  /// Of the workspace for weights written out at once: more are multiplied in turns.
  std::size_t dense_bytes_max = std::size_t{64} << 20;
};

}  // namespace octavo::gpu
