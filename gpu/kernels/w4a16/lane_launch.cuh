// Launches of products with lane-layout weights, for any codec; included by .cu
// files only.
#pragma once

#include "gpu/kernels/dense_gemm/tile_launch.cuh"
#include "gpu/kernels/w4a16/few_tokens.cuh"
#include "gpu/kernels/w4a16/lane_dequantize.cuh"
#include "gpu/kernels/w4a16/lane_operand.cuh"
#include "gpu/kernels/w4a16/lane_plan.hpp"
#include "gpu/kernels/w4a16/w4a16.hpp"

namespace octavo::gpu {

inline gemm_output output_of(const lane_product& p) {
  gemm_output out;
  out.values = p.output;
  out.as_float = p.output_type == dtype::float32;
  out.bias = p.bias;
  out.column_scales = p.weights.column_scales;
  out.column_scale_stride = p.weights.column_scale_stride;
  out.rows = p.tokens;
  out.columns = out.stride = p.weights.outputs;
  return out;
}

template <class Codec>
few_tokens_arguments lane_arguments(const lane_weights& w) {
  few_tokens_arguments t;
  t.codes = static_cast<const unsigned char*>(w.codes);
  t.scales = w.scales;
  t.zeros = w.zeros;
  t.inputs = w.inputs;
  t.group = w.group;
  t.blocks = (w.outputs + Codec::block_columns - 1) / Codec::block_columns;
  t.output.columns = w.outputs;
  t.output.column_scales = w.column_scales;
  t.output.column_scale_stride = w.column_scale_stride;
  return t;
}

template <class Codec>
void launch_few_tokens(stream& on, const lane_product& p, const void* activations,
                       const gemm_workspace& workspace, int bits) {
  const few_tokens_plan plan =
      plan_few_tokens(p.weights.outputs, p.weights.inputs, bits, p.multiprocessors);
  few_tokens_arguments t = lane_arguments<Codec>(p.weights);
  t.activations = activations;
  t.run_slices = plan.run_slices;
  t.output = output_of(p);
  t.output.partials = static_cast<float*>(workspace.data);
  t.output.counters = workspace.counters;
  const launch_shape shape{
      dim3(static_cast<unsigned>(plan.blocks), static_cast<unsigned>(plan.runs)),
      dim3(few_tokens_threads), few_tokens_shared_bytes<Codec>(p.tokens, plan.run_slices)};
  launch(on, shape, few_tokens_gemm<Codec>, t);
}

template <class Codec>
void launch_lane_tiles(stream& on, const lane_product& p, const void* activations,
                       const gemm_workspace& workspace, int bits) {
  tile_arguments t;
  t.activations = activations;
  t.weights = p.weights.codes;
  t.scales = p.weights.scales;
  t.zeros = p.weights.zeros;
  t.inputs = p.weights.inputs;
  t.group = p.weights.group;
  t.blocks = (p.weights.outputs + Codec::block_columns - 1) / Codec::block_columns;
  t.output = output_of(p);
  launch_tiles<lane_operand<Codec>>(on, t, plan_lane_tiles(p, bits), workspace);
}

/// Writes the weights of `columns` outputs, from `first` on, which is a multiple of a
/// block's columns.
template <class Codec>
void launch_dequantize(stream& on, const lane_weights& w, int first, int columns, void* values) {
  constexpr int block = Codec::block_columns;
  const few_tokens_arguments t = lane_arguments<Codec>(w);
  const int slices = (w.inputs + lane_block_inputs - 1) / lane_block_inputs;
  const launch_shape shape{
      dim3(static_cast<unsigned>((columns + block - 1) / block),
           static_cast<unsigned>((slices + dequantize_warps - 1) / dequantize_warps)),
      dim3(dequantize_warps * 32)};
  launch(on, shape, dequantize_lanes<Codec>, t, first / block,
         static_cast<typename Codec::element*>(values));
}

template <class Codec>
void launch_dense(stream& on, const lane_product& p, const void* activations,
                  const gemm_workspace& workspace) {
  const dense_plan plan = plan_dense(p);
  for (int first = 0; first < p.weights.outputs; first += plan.columns) {
    const dense_product turn = dense_turn(p, plan, first, activations, workspace);
    launch_dequantize<Codec>(on, p.weights, first, turn.outputs, workspace.data);
    dense_gemm(on, turn);
  }
}

/// Puts activations in order where the weights need it, then multiplies.
template <class Codec>
void launch_lane_product(stream& on, const lane_product& p, int bits) {
  gemm_workspace rest = p.workspace;
  const void* activations = p.activations;
  if (p.weights.order != nullptr) {
    gather_inputs(on, p.weights, p.type, p.activations, p.tokens, p.workspace.data);
    activations = p.workspace.data;
    rest = past(p.workspace, gathered_bytes(p));
  }
  const lane_path path = path_of(p);
  if (path == lane_path::few_tokens) {
    launch_few_tokens<Codec>(on, p, activations, rest, bits);
  } else if (path == lane_path::dense) {
    launch_dense<Codec>(on, p, activations, rest);
  } else {
    launch_lane_tiles<Codec>(on, p, activations, rest, bits);
  }
}

/// All weights.
template <class Codec>
void launch_dequantize(stream& on, const lane_weights& w, void* values) {
  launch_dequantize<Codec>(on, w, 0, w.outputs, values);
}

}  // namespace octavo::gpu
