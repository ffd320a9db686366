// The kernels in plain C++, for processors without the vector instructions that
// the other tables need, and as a reference for those.
#include "cpu/kernels/generic_attention.hpp"
#include "cpu/kernels/generic_elementwise.hpp"
#include "cpu/kernels/generic_float_matmul.hpp"
#include "cpu/kernels/generic_matmul.hpp"
#include "cpu/kernels/kernel_table.hpp"
#include "cpu/kernels/lanes_portable.hpp"

namespace octavo::cpu {

const kernel_table* portable_kernels() {
  using lanes = portable_lanes;
  static constexpr kernel_table table{
      .kind = isa::portable,
      .quantize_block =
          [](const float* values, block_slot out) {
            portable_quantize_block(values, out.codes, out.scale, out.sum, out.pairs);
          },
      .multiply = generic::multiply_any<lanes, lanes>,
      .multiply_floats = generic::multiply_any_floats<lanes, lanes>,
      .attend = generic::attend<lanes>,
      .rms_norm = generic::rms_norm<lanes>,
      .silu_multiply = generic::silu_multiply<lanes>,
      .gelu_multiply = generic::gelu_multiply<lanes>,
      .add = generic::add<lanes>,
      .scale = generic::scale<lanes>,
      .soft_cap = generic::soft_cap<lanes>,
  };
  return &table;
}

}  // namespace octavo::cpu
