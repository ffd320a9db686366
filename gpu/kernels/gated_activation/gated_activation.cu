// Checks parameters of gated_activation.hpp and chooses the instance of its kernel.
#include "gpu/kernels/gated_activation/gated_activation.cuh"

#include "gpu/kernels/common/launching.hpp"
#include "gpu/runtime/launch.hpp"

namespace octavo::gpu {
namespace {

constexpr const char* kernel = "gated_activation";
// Blocks of a row are counted by grid.y.
constexpr int width_max = 65535 * gated_activation_threads;

void check(const gated_activation_params& p) {
  require_range(p.rows, 0, 0x7fffffff, kernel, "rows");
  require_range(p.width, 1, width_max, kernel, "width");
  require_range(p.stride, p.width, 0x7fffffff, kernel, "stride");
  require_pointer(p.gate, kernel, "gate");
  require_pointer(p.up, kernel, "up");
  require_pointer(p.output, kernel, "output");
}

template <class T, gate_function function, int count>
void run(const gated_activation_params& p, stream& s) {
  const gated_activation_arguments<T> a{static_cast<const T*>(p.gate), static_cast<const T*>(p.up),
                                        static_cast<T*>(p.output), p.width, p.stride};
  const unsigned threads = threads_for((p.width + count - 1) / count, gated_activation_threads);
  const unsigned per_block = threads * count;
  const unsigned blocks = (static_cast<unsigned>(p.width) + per_block - 1) / per_block;
  launch_shape shape{dim3(static_cast<unsigned>(p.rows), blocks), dim3(threads)};
  shape.name = kernel;
  launch(s, shape, gated_activation_rows<count, function, T>, a);
}

template <class T, gate_function function>
void choose_width(const gated_activation_params& p, stream& s) {
  const bool by_eight =
      p.width % 8 == 0 && p.stride % 8 == 0 && aligned_to(16, {p.gate, p.up, p.output});
  by_eight ? run<T, function, 8>(p, s) : run<T, function, 1>(p, s);
}

}  // namespace

void gated_activation(const gated_activation_params& p, stream& s) {
  check(p);
  if (p.rows == 0) return;
  with_half_type(p.type, kernel, "type", [&](auto tag) {
    using T = typename decltype(tag)::type;
    p.function == gate_function::silu ? choose_width<T, gate_function::silu>(p, s)
                                      : choose_width<T, gate_function::gelu_tanh>(p, s);
  });
}

}  // namespace octavo::gpu
