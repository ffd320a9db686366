// Checks parameters of all_reduce.hpp and chooses the instance of its kernel.
#include "gpu/kernels/all_reduce/all_reduce.hpp"

#include <algorithm>
#include <type_traits>

#include "gpu/kernels/all_reduce/all_reduce.cuh"
#include "gpu/kernels/all_reduce/peer_launching.hpp"
#include "gpu/kernels/common/launching.hpp"
#include "gpu/kernels/rms_norm/rms_norm.hpp"
#include "gpu/runtime/launch.hpp"

namespace octavo::gpu {
namespace {

constexpr const char* kernel = "all_reduce";

std::size_t payload_of(const all_reduce_params& p) {
  return static_cast<std::size_t>(p.rows) * static_cast<std::size_t>(p.width) * bytes_of(p.type);
}

void check(const peer_group& g, const all_reduce_params& p) {
  require_range(p.rows, 0, 0x7fffffff, kernel, "rows");
  require_range(p.width, 1, norm_width_max, kernel, "width");
  check_peers(g, payload_of(p), kernel);
  require_pointer(p.input, kernel, "input");
  if (p.residual == nullptr) require_pointer(p.output, kernel, "output");
  if (p.residual != nullptr && p.output != nullptr) require_pointer(p.weight, kernel, "weight");
  const bool known = p.weight_type == dtype::float32 || p.weight_type == p.output_type;
  require_field(known, kernel, "weight_type", std::string(name_of(p.weight_type)),
                "float32 and output_type");
  const bool same = p.type == dtype::float32 || p.type == p.output_type;
  require_field(same, kernel, "type", std::string(name_of(p.type)), "float32 and output_type");
}

template <class X, class T, class W, int count>
void run(const peer_group& g, const all_reduce_params& p, stream& s) {
  all_reduce_arguments<X, T, W> a{};
  a.peers = memory_of(g);
  a.rows = p.rows;
  a.input = static_cast<const X*>(p.input);
  a.first.width = p.width;
  a.first.epsilon = p.epsilon;
  a.first.output = static_cast<T*>(p.output);
  if (p.residual != nullptr) {
    a.first.residual = a.first.new_residual = p.residual;
    a.first.input_weight = static_cast<const W*>(p.input_weight);
    a.first.weight = static_cast<const W*>(p.weight);
  }
  const int blocks = std::min(g.blocks, p.rows);
  launch_shape shape{dim3(static_cast<unsigned>(blocks)), dim3(threads_for(p.width / count, 512)),
                     norm_shared_bytes(p.width)};
  shape.cooperative = true;
  shape.name = kernel;
  auto algorithm = p.algorithm;
  if (algorithm == all_reduce_algorithm::automatic) {
    algorithm = choose_algorithm(g.ranks, payload_of(p));
  }
  if (algorithm == all_reduce_algorithm::two_shot) {
    launch(s, shape, all_reduce_rows<true, count, X, T, W>, a);
  } else {
    launch(s, shape, all_reduce_rows<false, count, X, T, W>, a);
  }
}

template <class X, class T, class W>
void choose_width(const peer_group& g, const all_reduce_params& p, stream& s) {
  // No more than four elements of each need: rows are then treated alike wherever they begin.
  const bool by_four = p.width % 4 == 0 && aligned_to(4 * sizeof(X), {p.input}) &&
                       aligned_to(4 * sizeof(T), {p.output}) && aligned_to(16, {p.residual}) &&
                       aligned_to(4 * sizeof(W), {p.weight, p.input_weight});
  by_four ? run<X, T, W, 4>(g, p, s) : run<X, T, W, 1>(g, p, s);
}

}  // namespace

std::size_t peer_memory_bytes(std::size_t payload_bytes) {
  return sizeof(peer_flags) + 4 * rounded_payload(payload_bytes);
}

all_reduce_algorithm choose_algorithm(int ranks, std::size_t bytes) {
  const std::size_t one_shot_max = ranks <= 4 ? 512 << 10 : 256 << 10;
  // Two ranks move as much either way.
  return ranks <= 2 || bytes <= one_shot_max ? all_reduce_algorithm::one_shot
                                             : all_reduce_algorithm::two_shot;
}

void all_reduce(const peer_group& g, const all_reduce_params& p, stream& s) {
  check(g, p);
  if (p.rows == 0) return;
  with_float_type(p.output_type, kernel, "output_type", [&](auto output) {
    using T = typename decltype(output)::type;
    with_float_type(p.type, kernel, "type", [&](auto exchanged) {
      using X = typename decltype(exchanged)::type;
      if constexpr (std::is_same_v<X, T> || std::is_same_v<X, float>) {
        p.weight_type == dtype::float32 ? choose_width<X, T, float>(g, p, s)
                                        : choose_width<X, T, T>(g, p, s);
      }
    });
  });
}

}  // namespace octavo::gpu
