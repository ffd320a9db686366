// Checks shapes, then enters the kernels.
#include "cpu/kernels/matmul.hpp"

#include <cassert>

namespace octavo::cpu {

void matmul(const packed_weights& w, const quantized_rows& x, std::size_t first_row_tile,
            std::size_t row_tiles, float* y, std::size_t ldy, const kernel_table& kernels) {
  assert(!w.takes_floats() && x.columns() == w.inputs());
  assert(first_row_tile + row_tiles <= w.row_tiles() && ldy >= w.rows());
  kernels.multiply(w.view(), x.view(), first_row_tile, row_tiles, y, ldy);
}

void matmul(const packed_weights& w, const float_rows& x, std::size_t first_row_tile,
            std::size_t row_tiles, float* y, std::size_t ldy, const kernel_table& kernels) {
  assert(w.takes_floats() && x.ldx >= w.columns());
  assert(first_row_tile + row_tiles <= w.row_tiles() && ldy >= w.rows());
  kernels.multiply_floats(w.view(), x.values, x.rows, x.ldx, first_row_tile, row_tiles, y, ldy);
}

}  // namespace octavo::cpu
