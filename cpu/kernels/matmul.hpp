// y = x Wᵀ on one thread, over a range of output rows, so that threads can take
// ranges as they become free.
//
//   matmul(w, x, first_row_tile, row_tiles, y, ldy);
//
// Every output element is one fixed chain of operations over its inputs. Its bits
// depend on the weights, its activation row and the instruction set: not on the
// number of activation rows, on ranges or on threads.
#pragma once

#include <cstddef>

#include "cpu/kernels/activations.hpp"
#include "cpu/kernels/kernel_table.hpp"
#include "cpu/kernels/packed_weights.hpp"

namespace octavo::cpu {

/// Writes y[m * ldy + n] for all rows m of x and the output rows n of the tiles
/// [first_row_tile, first_row_tile + row_tiles); tiles have 8 output rows. `w` is
/// quantized and x has w.inputs() columns.
void matmul(const packed_weights& w, const quantized_rows& x, std::size_t first_row_tile,
            std::size_t row_tiles, float* y, std::size_t ldy,
            const kernel_table& kernels = active_kernels());

/// Float rows, ldx floats apart.
struct float_rows {
  const float* values = nullptr;
  std::size_t rows = 0;
  std::size_t ldx = 0;
};

/// The same for weights that are floats (w.takes_floats()).
void matmul(const packed_weights& w, const float_rows& x, std::size_t first_row_tile,
            std::size_t row_tiles, float* y, std::size_t ldy,
            const kernel_table& kernels = active_kernels());

}  // namespace octavo::cpu
