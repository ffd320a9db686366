// Launches tile_gemm for a plan; included by .cu files only.
#pragma once

#include "gpu/kernels/dense_gemm/tile_gemm.cuh"
#include "gpu/kernels/dense_gemm/tile_plan.hpp"
#include "gpu/runtime/launch.hpp"
#include "gpu/types.hpp"

namespace octavo::gpu {

/// One launch for rows that fit the workspace.
template <class Operand, int tile_rows>
void launch_tile_rows(stream& on, const tile_arguments& t, const tile_plan& plan) {
  const auto bands = static_cast<unsigned>((t.output.rows + tile_rows - 1) / tile_rows);
  const launch_shape shape{dim3(static_cast<unsigned>(plan.runs), bands), dim3(tile_threads),
                           tile_shared_bytes<Operand, tile_rows>(t.group)};
  launch(on, shape, tile_gemm<Operand, tile_rows>, t);
}

/// The arguments for rows row0 .. row0 + rows - 1.
template <class Operand>
tile_arguments rows_of(const tile_arguments& t, int row0, int rows) {
  tile_arguments part = t;
  using element = typename Operand::element;
  const std::size_t skipped = static_cast<std::size_t>(row0);
  part.activations = static_cast<const element*>(t.activations) + skipped * t.inputs;
  const std::size_t width = t.output.as_float ? 4 : sizeof(typename Operand::result);
  part.output.values =
      static_cast<unsigned char*>(t.output.values) + skipped * t.output.stride * width;
  if (t.output.row_scales != nullptr) {
    part.output.row_scales += row0 * t.output.row_scale_stride;
  }
  if (t.more_scales != nullptr) part.more_scales += skipped * t.more_scales_stride;
  part.output.rows = rows;
  return part;
}

/// What products of all forms tell of their operands alike, the output without gaps.
template <class Product>
tile_arguments arguments_of(const Product& p) {
  tile_arguments t;
  t.activations = p.activations;
  t.weights = p.weights;
  t.inputs = p.inputs;
  t.group = p.inputs;
  t.output.values = p.output;
  t.output.as_float = p.output_type == dtype::float32;
  t.output.bias = p.bias;
  t.output.rows = p.tokens;
  t.output.columns = t.output.stride = p.outputs;
  return t;
}

/// Fills in the plan's part of the arguments and launches all rows.
template <class Operand>
void launch_tiles(stream& on, tile_arguments t, const tile_plan& plan,
                  const gemm_workspace& workspace) {
  t.stages = plan.stages;
  t.run_stages = plan.run_stages;
  t.output.partials = static_cast<float*>(workspace.data);
  t.output.counters = workspace.counters;
  const int rows_max = plan.launch_row_tiles() * plan.tile_rows;
  for (int row = 0; row < t.output.rows; row += rows_max) {
    const tile_arguments part = rows_of<Operand>(t, row, std::min(rows_max, t.output.rows - row));
    if (plan.tile_rows == 16) {
      launch_tile_rows<Operand, 16>(on, part, plan);
    } else if (plan.tile_rows == 32) {
      launch_tile_rows<Operand, 32>(on, part, plan);
    } else if constexpr (Operand::tile_rows_max == 64) {
      launch_tile_rows<Operand, 64>(on, part, plan);
    }
  }
}

}  // namespace octavo::gpu
