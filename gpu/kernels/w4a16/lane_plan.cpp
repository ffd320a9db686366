// Argument checks of products with lane-layout weights: see lane_plan.hpp.
#include "gpu/kernels/w4a16/lane_plan.hpp"

#include <cstdint>
#include <string>

#include "core/error.hpp"

namespace octavo::gpu {
namespace {

[[noreturn]] void refuse(const char* kernel, const std::string& problem) {
  throw input_error(std::string(kernel) + ": " + problem);
}

void check_positive(const char* kernel, const char* field, int value) {
  if (value < 1)
    refuse(kernel, std::string(field) + " is " + std::to_string(value) + "; it must be at least 1");
}

void check_pointer(const char* kernel, const char* field, const void* pointer, bool needed) {
  if (pointer == nullptr && needed) refuse(kernel, std::string(field) + " is null");
  if (reinterpret_cast<std::uintptr_t>(pointer) % 16 != 0) {
    refuse(kernel, std::string(field) + " is not 16-byte aligned");
  }
}

gemm_needs dense_needs(const lane_product& p) {
  const dense_plan plan = plan_dense(p);
  // The last turn may be smaller, and be shared out in another way.
  const int last = (p.weights.outputs - 1) / plan.columns * plan.columns;
  gemm_needs needs = dense_gemm_needs(dense_turn(p, plan, 0, nullptr, {}));
  needs |= dense_gemm_needs(dense_turn(p, plan, last, nullptr, {}));
  needs.bytes += plan.weight_bytes;
  return needs;
}

}  // namespace

gemm_needs needs_of(const lane_product& p, int bits) {
  gemm_needs needs;
  switch (path_of(p)) {
    case lane_path::few_tokens:
      needs = plan_few_tokens(p.weights.outputs, p.weights.inputs, bits, p.multiprocessors)
                  .needs(lane_block_columns(bits));
      break;
    case lane_path::dense:
      needs = dense_needs(p);
      break;
    default:
      needs = plan_lane_tiles(p, bits).needs();
  }
  needs.bytes += gathered_bytes(p);
  return needs;
}

dense_product dense_turn(const lane_product& p, const dense_plan& plan, int first,
                         const void* activations, const gemm_workspace& workspace) {
  const auto skipped = static_cast<std::size_t>(first);
  dense_product turn;
  turn.activations = activations;
  turn.weights = workspace.data;
  if (p.bias != nullptr) turn.bias = static_cast<const unsigned char*>(p.bias) + 2 * skipped;
  const std::size_t width = p.output_type == dtype::float32 ? 4 : 2;
  turn.output = static_cast<unsigned char*>(p.output) + skipped * width;
  turn.output_stride = p.weights.outputs;
  turn.tokens = p.tokens;
  turn.outputs = std::min(plan.columns, p.weights.outputs - first);
  turn.inputs = p.weights.inputs;
  turn.type = p.type;
  turn.output_type = p.output_type;
  turn.multiprocessors = p.multiprocessors;
  if (workspace.data != nullptr) turn.workspace = past(workspace, plan.weight_bytes);
  return turn;
}

void check_lane_shape(const lane_product& p, const char* kernel) {
  const lane_weights& w = p.weights;
  check_positive(kernel, "tokens", p.tokens);
  check_positive(kernel, "weights.outputs", w.outputs);
  check_positive(kernel, "weights.inputs", w.inputs);
  check_positive(kernel, "weights.group", w.group);
  check_positive(kernel, "multiprocessors", p.multiprocessors);
  if (w.inputs % 8 != 0) {
    refuse(kernel,
           "weights.inputs is " + std::to_string(w.inputs) + "; it must be a multiple of 8");
  }
  if (w.group < w.inputs && w.group % 32 != 0) {
    refuse(kernel, "weights.group is " + std::to_string(w.group) +
                       "; it must be a multiple of 32, or all inputs");
  }
  if (w.order == nullptr && w.source_inputs != w.inputs) {
    refuse(kernel, "weights.order is null, but weights.inputs " + std::to_string(w.inputs) +
                       " is not weights.source_inputs " + std::to_string(w.source_inputs));
  }
  if (p.type != dtype::float16 && p.type != dtype::bfloat16) {
    refuse(kernel,
           "type is " + std::string(name_of(p.type)) + "; float16 and bfloat16 are allowed");
  }
  if (p.output_type != p.type && p.output_type != dtype::float32) {
    refuse(kernel, "output_type is " + std::string(name_of(p.output_type)) + "; " +
                       std::string(name_of(p.type)) + " and float32 are allowed");
  }
  if (p.path == lane_path::few_tokens && p.tokens > 8) {
    refuse(kernel, "path few_tokens takes up to 8 tokens, not " + std::to_string(p.tokens));
  }
  if (p.batch_invariant && (p.path == lane_path::few_tokens || p.path == lane_path::dense)) {
    refuse(kernel, "paths few_tokens and dense are not batch-invariant");
  }
}

void check_lane_pointers(const lane_product& p, const char* kernel) {
  check_pointer(kernel, "activations", p.activations, true);
  check_pointer(kernel, "output", p.output, true);
  check_pointer(kernel, "weights.codes", p.weights.codes, true);
  check_pointer(kernel, "weights.scales", p.weights.scales, p.weights.column_scales == nullptr);
  check_pointer(kernel, "weights.zeros", p.weights.zeros, false);
}

}  // namespace octavo::gpu
