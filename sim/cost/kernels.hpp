// How long the kernels of a transformer take on a GPU: rooflines with efficiency
// curves by shape. Pure functions of shapes and the GPU's numbers; all times in
// microseconds, on one GPU of a tensor-parallel group.
//
// Each kernel is a floor (launch, prologue, epilogue) plus a smooth maximum of
// what bounds it: bytes over bandwidth, operations over peak, and the work that
// one processor must do alone. The constants shared by all GPUs are in
// kernels.cpp; those that differ are gpu_efficiency.
#pragma once

#include <cstdint>
#include <span>

#include "model/formats.hpp"
#include "sim/catalogue/gpu.hpp"
#include "sim/cost/cost_model.hpp"

namespace octavo::sim {

/// What a weight format means for a matrix multiplication on a GPU.
struct gemm_rates {
  model::weight_format format = model::weight_format::fp16;
  double activation_bytes = 2;
  /// Reachable operations per microsecond, all processors together.
  double operations_per_us = 0;
  double floor_us = 0;
};

/// fp8 and int8 multiply at their own peaks where the GPU has one; otherwise,
/// and for int4 always, weights are widened and multiplied in 16 bits.
[[nodiscard]] gemm_rates rates_for(const gpu_spec& gpu, model::weight_format format);

/// (m x k) times (k x n). Tiles of several shapes, waves over the processors,
/// and splitting k where there are few tiles. Never falls as m, n or k grow.
[[nodiscard]] double gemm_us(const gpu_spec& gpu, const gemm_rates& rates, std::int64_t m,
                             std::int64_t n, std::int64_t k);

/// Heads on one GPU, and how their KV is stored.
struct attention_shape {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t kv_element_bytes = 2;
  /// 0 = every token is attended to.
  std::int64_t window = 0;
};

/// One layer's attention of `sequences` decoding sequences that together read
/// `context` tokens. A window caps the mean context: of the individual ones only
/// the sum is known.
[[nodiscard]] double decode_attention_us(const gpu_spec& gpu, const attention_shape& shape,
                                         std::int64_t sequences, std::int64_t context);

/// One layer's causal attention of all prefill chunks, in one launch.
[[nodiscard]] double prefill_attention_us(const gpu_spec& gpu, const attention_shape& shape,
                                          std::span<const prefill_chunk> chunks);

/// A kernel that only moves `bytes`.
[[nodiscard]] double elementwise_us(const gpu_spec& gpu, double bytes);

/// Sum of `bytes` over `gpus` GPUs of one node: direct reads of peers' memory in
/// one or two shots for small messages, a ring for large ones.
[[nodiscard]] double all_reduce_us(const gpu_spec& gpu, int gpus, double bytes);

}  // namespace octavo::sim
