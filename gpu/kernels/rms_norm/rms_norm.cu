// Checks parameters of rms_norm.hpp and chooses the instance of its kernel.
#include "gpu/kernels/rms_norm/rms_norm.hpp"

#include "gpu/kernels/common/launching.hpp"
#include "gpu/kernels/rms_norm/rms_norm.cuh"
#include "gpu/runtime/launch.hpp"

namespace octavo::gpu {
namespace {

constexpr const char* kernel = "rms_norm";

void check(const rms_norm_params& p) {
  require_range(p.rows, 0, 0x7fffffff, kernel, "rows");
  require_range(p.width, 1, norm_width_max, kernel, "width");
  if (p.residual == nullptr) {
    require_pointer(p.input, kernel, "input");
    require_pointer(p.output, kernel, "output");
  }
  if (p.input_weight != nullptr) {
    require_pointer(p.input, kernel, "input (with input_weight)");
    require_pointer(p.residual, kernel, "residual (with input_weight)");
  }
  if (p.row_ids != nullptr) require_pointer(p.output, kernel, "output (with row_ids)");
  if (p.output != nullptr) require_pointer(p.weight, kernel, "weight");
  const bool known = p.weight_type == dtype::float32 || p.weight_type == p.type;
  require_field(known, kernel, "weight_type", std::string(name_of(p.weight_type)),
                "float32 and the type of the rows");
}

template <class T, class W, int count>
void run(const rms_norm_params& p, stream& s) {
  rms_norm_arguments<T, W> a;
  a.first.residual = p.residual;
  a.first.new_residual = p.row_ids != nullptr || p.input == nullptr ? nullptr : p.residual;
  a.first.input_weight = static_cast<const W*>(p.input_weight);
  a.first.weight = static_cast<const W*>(p.weight);
  a.first.output = static_cast<T*>(p.output);
  a.first.width = p.width;
  a.first.epsilon = p.epsilon;
  a.input = static_cast<const T*>(p.input);
  a.row_ids = p.row_ids;
  launch_shape shape{dim3(static_cast<unsigned>(p.rows)), dim3(threads_for(p.width / count, 1024)),
                     norm_shared_bytes(p.width)};
  shape.name = kernel;
  launch(s, shape, rms_norm_rows<count, T, W>, a);
}

template <class T, class W>
void choose_width(const rms_norm_params& p, stream& s) {
  const bool by_four = p.width % 4 == 0 && aligned_to(8, {p.input, p.output}) &&
                       aligned_to(16, {p.residual, p.weight, p.input_weight});
  by_four ? run<T, W, 4>(p, s) : run<T, W, 1>(p, s);
}

}  // namespace

void rms_norm(const rms_norm_params& p, stream& s) {
  check(p);
  if (p.rows == 0) return;
  with_half_type(p.type, kernel, "type", [&](auto tag) {
    using T = typename decltype(tag)::type;
    p.weight_type == dtype::float32 ? choose_width<T, float>(p, s) : choose_width<T, T>(p, s);
  });
}

}  // namespace octavo::gpu
