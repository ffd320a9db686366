// Products of 16-bit activations with 4-bit weights: output = x w^T (+ bias), sums
// in float. AWQ, GPTQ and compressed-tensors alike, by way of repack.hpp.
//
// Up to 8 tokens: few_tokens.cuh. More, and in batch-invariant mode always:
// tile_gemm.cuh. Both read each weight once for 64 tokens. From 256 tokens on it is
// faster to write weights out as 16-bit numbers, as many as the workspace holds at a
// time, and to use dense_gemm.
#pragma once

#include "gpu/kernels/w4a16/lane_product.hpp"
#include "gpu/runtime/stream.hpp"

namespace octavo::gpu {

/// What w4a16 needs of its workspace for these tokens, weights, device and mode.
/// Throws input_error naming the field that does not fit.
[[nodiscard]] gemm_needs w4a16_needs(const lane_product& product);

/// Queues the product. No argument may depend on device data, so that it can be
/// captured in a graph. Throws input_error naming the field that does not fit.
void w4a16(stream& on, const lane_product& product);

/// Writes the weights as numbers of `type` to `values`, [outputs, inputs] with the
/// inputs in the order of the layout.
void w4a16_dequantize(stream& on, const lane_weights& weights, dtype type, void* values);

/// Puts activations into the order of the layout: [tokens, source_inputs] to
/// [tokens, inputs], zeros where the order has filling. Needs weights.order.
void gather_inputs(stream& on, const lane_weights& weights, dtype type, const void* activations,
                   int tokens, void* gathered);

}  // namespace octavo::gpu
