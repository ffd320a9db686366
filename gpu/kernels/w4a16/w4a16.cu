// Launchers of 4-bit products: see w4a16.hpp.
#include "gpu/kernels/w4a16/w4a16.hpp"

#include "core/error.hpp"
#include "gpu/kernels/w4a16/int4_codec.cuh"
#include "gpu/kernels/w4a16/lane_launch.cuh"

namespace octavo::gpu {
namespace {

constexpr int gather_threads = 256;

/// One thread makes 8 neighbouring numbers of one row. Grid: x = rows, y over a row.
/// 16-bit numbers of any type; -1 in `order` gives zero.
__global__ void __launch_bounds__(gather_threads)
    gather_rows(const unsigned short* from, const int* order, int source_inputs, int inputs,
                unsigned short* to) {
  const int first =
      (static_cast<int>(blockIdx.y) * gather_threads + static_cast<int>(threadIdx.x)) * 8;
  if (first >= inputs) return;
  const unsigned short* row = from + static_cast<std::size_t>(blockIdx.x) * source_inputs;
  std::uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int low = load_global(order + first + 2 * i);
    const int high = load_global(order + first + 2 * i + 1);
    words[i] = low < 0 ? 0U : load_global(row + low);
    words[i] |= (high < 0 ? 0U : static_cast<std::uint32_t>(load_global(row + high))) << 16;
  }
  store_global(reinterpret_cast<uint4*>(to + static_cast<std::size_t>(blockIdx.x) * inputs + first),
               make_uint4(words[0], words[1], words[2], words[3]));
}

}  // namespace

gemm_needs w4a16_needs(const lane_product& product) {
  check_lane_shape(product, "w4a16");
  return needs_of(product, 4);
}

void w4a16(stream& on, const lane_product& product) {
  check_lane_pointers(product, "w4a16");
  check_workspace(product.workspace, w4a16_needs(product), "w4a16");
  if (product.type == dtype::float16) {
    launch_lane_product<int4_codec<__half>>(on, product, 4);
  } else {
    launch_lane_product<int4_codec<__nv_bfloat16>>(on, product, 4);
  }
}

void w4a16_dequantize(stream& on, const lane_weights& weights, dtype type, void* values) {
  if (type == dtype::float16) {
    launch_dequantize<int4_codec<__half>>(on, weights, values);
  } else if (type == dtype::bfloat16) {
    launch_dequantize<int4_codec<__nv_bfloat16>>(on, weights, values);
  } else {
    throw input_error("w4a16_dequantize: type is " + std::string(name_of(type)) +
                      "; float16 and bfloat16 are allowed");
  }
}

void gather_inputs(stream& on, const lane_weights& weights, dtype type, const void* activations,
                   int tokens, void* gathered) {
  if (bytes_of(type) != 2 || weights.order == nullptr || tokens < 1) {
    throw input_error("gather_inputs: needs 16-bit activations, weights.order, and a token");
  }
  const launch_shape shape{
      dim3(static_cast<unsigned>(tokens),
           static_cast<unsigned>((weights.inputs / 8 + gather_threads - 1) / gather_threads)),
      dim3(gather_threads)};
  launch(on, shape, gather_rows, static_cast<const unsigned short*>(activations), weights.order,
         weights.source_inputs, weights.inputs, static_cast<unsigned short*>(gathered));
}

}  // namespace octavo::gpu
