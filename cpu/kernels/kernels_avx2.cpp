// The kernels for AVX2, FMA and F16C. Compiled with these flags: nothing here may
// instantiate code that another translation unit could share.
#include "cpu/kernels/kernel_table.hpp"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include "cpu/kernels/generic_attention.hpp"
#include "cpu/kernels/generic_elementwise.hpp"
#include "cpu/kernels/generic_float_matmul.hpp"
#include "cpu/kernels/generic_matmul.hpp"
#include "cpu/kernels/lanes_avx2.hpp"

namespace octavo::cpu {

const kernel_table* avx2_kernels() {
  using lanes = avx2_lanes;
  static constexpr kernel_table table{
      .kind = isa::avx2,
      .quantize_block =
          [](const float* values, block_slot out) {
            avx2_quantize_block(values, out.codes, out.scale, out.sum, out.pairs);
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
#else
namespace octavo::cpu {

const kernel_table* avx2_kernels() {
  return nullptr;
}

}  // namespace octavo::cpu
#endif
