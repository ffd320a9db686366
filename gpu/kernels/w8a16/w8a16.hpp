// Products of 16-bit activations with 8-bit weights: GPTQ and compressed-tensors
// integers, and e4m3 floats as a storage type where the device multiplies none
// (before sm_89) or activations are to stay as they are. The same layout, kernels
// and modes as w4a16.
#pragma once

#include "gpu/kernels/w4a16/lane_product.hpp"
#include "gpu/runtime/stream.hpp"

namespace octavo::gpu {

/// What 8-bit codes mean.
enum class byte_code { int8, e4m3 };

/// What w8a16 needs of its workspace. Throws input_error naming the field that does
/// not fit.
[[nodiscard]] gemm_needs w8a16_needs(const lane_product& product);

/// Queues the product; can be captured in a graph. Throws input_error naming the
/// field that does not fit.
void w8a16(stream& on, byte_code code, const lane_product& product);

/// Writes the weights as numbers of `type` to `values`, [outputs, inputs] with the
/// inputs in the order of the layout.
void w8a16_dequantize(stream& on, byte_code code, const lane_weights& weights, dtype type,
                      void* values);

}  // namespace octavo::gpu
