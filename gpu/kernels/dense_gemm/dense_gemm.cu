// Launcher of dense products: see dense_gemm.hpp.
#include "gpu/kernels/dense_gemm/dense_gemm.hpp"

#include "core/error.hpp"
#include "gpu/kernels/dense_gemm/dense_operand.cuh"
#include "gpu/kernels/dense_gemm/library_gemm.hpp"
#include "gpu/kernels/dense_gemm/tile_launch.cuh"

namespace octavo::gpu {
namespace {

void check(const dense_product& p) {
  const auto refuse = [](const std::string& problem) {
    throw input_error("dense_gemm: " + problem);
  };
  if (p.tokens < 1 || p.outputs < 1 || p.inputs < 1 || p.multiprocessors < 1) {
    refuse("tokens, outputs, inputs and multiprocessors must be at least 1; they are " +
           std::to_string(p.tokens) + ", " + std::to_string(p.outputs) + ", " +
           std::to_string(p.inputs) + " and " + std::to_string(p.multiprocessors));
  }
  if (p.output_stride != 0 && p.output_stride < p.outputs) {
    refuse("output_stride is " + std::to_string(p.output_stride) + "; it must be 0 or at least " +
           std::to_string(p.outputs));
  }
  if (p.inputs % 8 != 0) {
    refuse("inputs is " + std::to_string(p.inputs) + "; it must be a multiple of 8");
  }
  if (p.type != dtype::float16 && p.type != dtype::bfloat16) {
    refuse("type is " + std::string(name_of(p.type)) + "; float16 and bfloat16 are allowed");
  }
  if (p.output_type != p.type && p.output_type != dtype::float32) {
    refuse("output_type is " + std::string(name_of(p.output_type)) + "; " +
           std::string(name_of(p.type)) + " and float32 are allowed");
  }
}

int stride_of(const dense_product& p) {
  return p.output_stride == 0 ? p.outputs : p.output_stride;
}

/// The library adds a bias of the output's type only, and needs rows of whole 16 bytes.
bool takes_library(const dense_product& p) {
  return p.allow_library && !p.batch_invariant && library_gemm_available() && p.outputs % 8 == 0 &&
         stride_of(p) % 8 == 0 && (p.bias == nullptr || p.output_type == p.type);
}

tile_plan plan_of(const dense_product& p) {
  return plan_tiles(p.tokens, p.outputs, p.inputs, dense_operand<__half>::inputs, p.multiprocessors,
                    p.batch_invariant);
}

bool launch_library(stream& on, const dense_product& p) {
  library_product call;
  call.activations = p.activations;
  call.weights = p.weights;
  call.bias = p.bias;
  call.output = p.output;
  call.output_stride = stride_of(p);
  call.tokens = p.tokens;
  call.outputs = p.outputs;
  call.inputs = p.inputs;
  call.type = p.type;
  call.output_type = p.output_type;
  call.workspace = p.workspace;
  return library_gemm(on, call);
}

}  // namespace

gemm_needs dense_gemm_needs(const dense_product& product) {
  check(product);
  gemm_needs needs = plan_of(product).needs();
  if (takes_library(product)) needs |= {library_workspace_bytes, 0};
  return needs;
}

void dense_gemm(stream& on, const dense_product& p) {
  check_workspace(p.workspace, dense_gemm_needs(p), "dense_gemm");
  if (takes_library(p) && launch_library(on, p)) return;
  tile_arguments t = arguments_of(p);
  t.output.stride = stride_of(p);
  if (p.type == dtype::float16) {
    launch_tiles<dense_operand<__half>>(on, t, plan_of(p), p.workspace);
  } else {
    launch_tiles<dense_operand<__nv_bfloat16>>(on, t, plan_of(p), p.workspace);
  }
}

}  // namespace octavo::gpu
