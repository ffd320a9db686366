// The inner loops of one instruction set, as function pointers. Everything else
// reaches them through matmul.hpp, attention.hpp and elementwise.hpp.
#pragma once

#include <cstddef>

#include "cpu/kernels/isa.hpp"
#include "cpu/kernels/layout.hpp"

namespace octavo::cpu {

struct attention_shape;
struct attention_work;

struct kernel_table {
  isa kind{};

  /// 32 floats to one block of codes.
  void (*quantize_block)(const float* values, block_slot out);

  /// y[m * ldy + n] for the output rows of the tiles [first, first + tiles).
  void (*multiply)(const weights_view& w, const rows_view& x, std::size_t first, std::size_t tiles,
                   float* y, std::size_t ldy);
  /// The same for float layouts; x[m * ldx + k].
  void (*multiply_floats)(const weights_view& w, const float* x, std::size_t rows, std::size_t ldx,
                          std::size_t first, std::size_t tiles, float* y, std::size_t ldy);

  void (*attend)(const attention_shape& shape, const attention_work& work);

  void (*rms_norm)(const float* x, const float* weight, std::size_t n, float epsilon, float* out);
  void (*silu_multiply)(const float* gate, const float* up, std::size_t n, float* out);
  void (*gelu_multiply)(const float* gate, const float* up, std::size_t n, float* out);
  void (*add)(const float* a, const float* b, std::size_t n, float* out);
  void (*scale)(const float* x, float factor, std::size_t n, float* out);
  void (*soft_cap)(const float* x, float cap, std::size_t n, float* out);
};

/// nullptr where this build has no such kernels.
[[nodiscard]] const kernel_table* portable_kernels();
[[nodiscard]] const kernel_table* avx2_kernels();
[[nodiscard]] const kernel_table* avx512_vnni_kernels();

/// Throws input_error for what this machine cannot run.
[[nodiscard]] const kernel_table& kernels_for(isa kind);
/// Those of active_isa().
[[nodiscard]] const kernel_table& active_kernels();

}  // namespace octavo::cpu
