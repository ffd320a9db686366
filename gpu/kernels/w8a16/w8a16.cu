// Launchers of 8-bit products: see w8a16.hpp.
#include "gpu/kernels/w8a16/w8a16.hpp"

#include "core/error.hpp"
#include "gpu/kernels/w4a16/lane_launch.cuh"
#include "gpu/kernels/w8a16/byte_codecs.cuh"

namespace octavo::gpu {

gemm_needs w8a16_needs(const lane_product& product) {
  check_lane_shape(product, "w8a16");
  return needs_of(product, 8);
}

void w8a16(stream& on, byte_code code, const lane_product& product) {
  check_lane_pointers(product, "w8a16");
  check_workspace(product.workspace, w8a16_needs(product), "w8a16");
  const bool half = product.type == dtype::float16;
  if (code == byte_code::int8) {
    half ? launch_lane_product<int8_codec<__half>>(on, product, 8)
         : launch_lane_product<int8_codec<__nv_bfloat16>>(on, product, 8);
  } else {
    half ? launch_lane_product<e4m3_codec<__half>>(on, product, 8)
         : launch_lane_product<e4m3_codec<__nv_bfloat16>>(on, product, 8);
  }
}

void w8a16_dequantize(stream& on, byte_code code, const lane_weights& weights, dtype type,
                      void* values) {
  if (type != dtype::float16 && type != dtype::bfloat16) {
    throw input_error("w8a16_dequantize: type is " + std::string(name_of(type)) +
                      "; float16 and bfloat16 are allowed");
  }
  const bool half = type == dtype::float16;
  if (code == byte_code::int8) {
    half ? launch_dequantize<int8_codec<__half>>(on, weights, values)
         : launch_dequantize<int8_codec<__nv_bfloat16>>(on, weights, values);
  } else {
    half ? launch_dequantize<e4m3_codec<__half>>(on, weights, values)
         : launch_dequantize<e4m3_codec<__nv_bfloat16>>(on, weights, values);
  }
}

}  // namespace octavo::gpu
