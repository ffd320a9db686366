// The kernels for AVX-512 with VNNI. Compiled with these flags: nothing here may
// instantiate code that another translation unit could share.
#include "cpu/kernels/kernel_table.hpp"

#if defined(__AVX512VNNI__) && defined(__AVX512VL__) && defined(__AVX512BW__)
#include "cpu/kernels/generic_attention.hpp"
#include "cpu/kernels/generic_elementwise.hpp"
#include "cpu/kernels/generic_float_matmul.hpp"
#include "cpu/kernels/generic_matmul.hpp"
#include "cpu/kernels/lanes_vnni.hpp"

namespace octavo::cpu {

const kernel_table* avx512_vnni_kernels() {
  using lanes = avx2_floats;
  static constexpr kernel_table table{
      .kind = isa::avx512_vnni,
      .quantize_block =
          [](const float* values, block_slot out) {
            avx2_quantize_block(values, out.codes, out.scale, out.sum, out.pairs);
          },
      .multiply = generic::multiply_any<vnni_two_tiles, vnni_one_tile>,
      .multiply_floats = generic::multiply_any_floats<vnni_two_tiles, vnni_one_tile>,
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

const kernel_table* avx512_vnni_kernels() {
  return nullptr;
}

}  // namespace octavo::cpu
#endif
