// Launchers of e4m3 products: see fp8_gemm.hpp.
#include "gpu/kernels/fp8_gemm/fp8_gemm.hpp"

#include "core/error.hpp"
#include "gpu/kernels/dense_gemm/library_gemm.hpp"
#include "gpu/kernels/dense_gemm/tile_launch.cuh"
#include "gpu/kernels/fp8_gemm/fp8_operand.cuh"
#include "gpu/kernels/fp8_gemm/quantize.cuh"

namespace octavo::gpu {
namespace {

[[noreturn]] void refuse(const std::string& problem) {
  throw input_error(problem);
}

void check_sizes(const char* kernel, int tokens, int outputs, int inputs) {
  if (tokens < 1 || outputs < 1 || inputs < 1) {
    refuse(std::string(kernel) + ": tokens, outputs and inputs must be at least 1; they are " +
           std::to_string(tokens) + ", " + std::to_string(outputs) + " and " +
           std::to_string(inputs));
  }
  if (inputs % 16 != 0) {
    refuse(std::string(kernel) + ": inputs is " + std::to_string(inputs) +
           "; it must be a multiple of 16");
  }
}

void check_type(const char* kernel, dtype type) {
  if (type == dtype::float16 || type == dtype::bfloat16) return;
  refuse(std::string(kernel) + ": type is " + std::string(name_of(type)) +
         "; float16 and bfloat16 are allowed");
}

void check(const fp8_product& p) {
  check_sizes("fp8_gemm", p.tokens, p.outputs, p.inputs);
  check_type("fp8_gemm", p.type);
  if (p.multiprocessors < 1) refuse("fp8_gemm: multiprocessors must be at least 1");
  if (p.output_type != p.type && p.output_type != dtype::float32) {
    refuse("fp8_gemm: output_type is " + std::string(name_of(p.output_type)) + "; " +
           std::string(name_of(p.type)) + " and float32 are allowed");
  }
  if ((p.weight_mode == fp8_weight_scales::block) !=
      (p.activation_mode == fp8_activation_scales::token_block)) {
    refuse("fp8_gemm: weight_mode block and activation_mode token_block go together");
  }
}

bool has_row_scales(const fp8_product& p) {
  return p.weight_mode == fp8_weight_scales::channel &&
         p.activation_mode == fp8_activation_scales::token;
}

/// The library takes one scale for each operand or, on some devices, for each of their rows;
/// outputs by 16, and a bias of the output's type.
bool takes_library(const fp8_product& p) {
  if (!p.allow_library || p.batch_invariant || !library_gemm_available()) return false;
  if (p.outputs % 16 != 0 || (p.bias != nullptr && p.output_type != p.type)) return false;
  const bool whole = p.weight_mode == fp8_weight_scales::tensor &&
                     p.activation_mode == fp8_activation_scales::fixed;
  return whole || (has_row_scales(p) && library_scales_rows());
}

tile_plan plan_of(const fp8_product& p) {
  return plan_tiles(p.tokens, p.outputs, p.inputs, fp8_block, p.multiprocessors, p.batch_invariant,
                    fp8_operand<__half, true>::tile_rows_max);
}

bool launch_library(stream& on, const fp8_product& p) {
  library_product call;
  call.activations = p.activations;
  call.weights = p.weights;
  call.bias = p.bias;
  call.output = p.output;
  call.output_stride = p.outputs;
  call.tokens = p.tokens;
  call.outputs = p.outputs;
  call.inputs = p.inputs;
  call.type = dtype::float8_e4m3;
  call.output_type = p.output_type;
  call.activation_scale = p.activation_scales;
  call.weight_scale = p.weight_scales;
  call.row_scales = has_row_scales(p);
  call.workspace = p.workspace;
  return library_gemm(on, call);
}

template <class T>
void launch_tiles_of(stream& on, const fp8_product& p) {
  tile_arguments t = arguments_of(p);
  if (p.weight_mode == fp8_weight_scales::block) {
    t.scales = p.weight_scales;
    t.more_scales = p.activation_scales;
    t.more_scales_stride = (p.inputs + fp8_block - 1) / fp8_block;
    return launch_tiles<fp8_operand<T, true>>(on, t, plan_of(p), p.workspace);
  }
  t.output.column_scales = p.weight_scales;
  t.output.column_scale_stride = p.weight_mode == fp8_weight_scales::channel ? 1 : 0;
  t.output.row_scales = p.activation_scales;
  t.output.row_scale_stride = p.activation_mode == fp8_activation_scales::token ? 1 : 0;
  launch_tiles<fp8_operand<T, false>>(on, t, plan_of(p), p.workspace);
}

template <class T>
void launch_quantize(stream& on, const fp8_quantization& work) {
  const auto* values = static_cast<const T*>(work.values);
  auto* codes = static_cast<unsigned char*>(work.codes);
  const auto tokens = static_cast<unsigned>(work.tokens);
  if (work.mode == fp8_activation_scales::token_block) {
    const int blocks = (work.inputs + fp8_block - 1) / fp8_block;
    const auto across =
        static_cast<unsigned>((blocks + quantize_threads / 16 - 1) / (quantize_threads / 16));
    launch(on, launch_shape{dim3(tokens, across), dim3(quantize_threads)}, quantize_blocks<T>,
           values, codes, work.scales, work.inputs, blocks);
    return;
  }
  const float* given = work.mode == fp8_activation_scales::fixed ? work.scales : nullptr;
  launch(on, launch_shape{dim3(tokens), dim3(quantize_threads), quantize_threads / 32 * 4},
         quantize_tokens<T>, values, codes, work.scales, given, work.inputs);
}

}  // namespace

void fp8_quantize(stream& on, const fp8_quantization& work) {
  check_sizes("fp8_quantize", work.tokens, 1, work.inputs);
  check_type("fp8_quantize", work.type);
  if (work.type == dtype::float16) {
    launch_quantize<__half>(on, work);
  } else {
    launch_quantize<__nv_bfloat16>(on, work);
  }
}

gemm_needs fp8_gemm_needs(const fp8_product& product) {
  check(product);
  gemm_needs needs = plan_of(product).needs();
  if (takes_library(product)) needs |= {library_workspace_bytes, 0};
  return needs;
}

void fp8_gemm(stream& on, const fp8_product& p) {
  check_workspace(p.workspace, fp8_gemm_needs(p), "fp8_gemm");
  if (takes_library(p) && launch_library(on, p)) return;
  if (p.type == dtype::float16) {
    launch_tiles_of<__half>(on, p);
  } else {
    launch_tiles_of<__nv_bfloat16>(on, p);
  }
}

}  // namespace octavo::gpu
