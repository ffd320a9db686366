// The kernels for AVX-512 with VNNI. Compiled with these flags: nothing here may
// instantiate code that another translation unit could share.
#include "cpu/kernels/kernel_table.hpp"

#if defined(__AVX512VNNI__) && defined(__AVX512VL__) && defined(__AVX512BW__)
#include "cpu/kernels/generic_float_matmul.hpp"
#include "cpu/kernels/generic_matmul.hpp"
#include "cpu/kernels/lanes_vnni.hpp"

namespace octavo::cpu {

const kernel_table* avx512_vnni_kernels() {
  static constexpr kernel_table table{
      .kind = isa::avx512_vnni,
      .quantize_block =
          [](const float* values, block_slot out) {
            avx2_quantize_block(values, out.codes, out.scale, out.sum, out.pairs);
          },
      .multiply = generic::multiply_any<vnni_two_tiles, vnni_one_tile>,
      .multiply_floats = generic::multiply_any_floats<vnni_two_tiles, vnni_one_tile>,
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
