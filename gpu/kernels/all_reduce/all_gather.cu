// Checks parameters of all_gather.hpp and chooses the instance of its kernel.
#include "gpu/kernels/all_reduce/all_gather.hpp"

#include <algorithm>

#include "gpu/kernels/all_reduce/all_gather.cuh"
#include "gpu/kernels/all_reduce/peer_launching.hpp"
#include "gpu/runtime/launch.hpp"

namespace octavo::gpu {
namespace {

constexpr const char* kernel = "all_gather";

template <int count>
void run(const peer_group& g, const all_gather_params& p, stream& s) {
  constexpr std::size_t per_block = std::size_t{all_gather_threads} * count;
  const std::size_t blocks =
      std::min((p.count + per_block - 1) / per_block, static_cast<std::size_t>(g.blocks));
  launch_shape shape{dim3(static_cast<unsigned>(blocks)), dim3(all_gather_threads)};
  shape.cooperative = true;
  shape.name = kernel;
  launch(s, shape, all_gather_parts<count>,
         all_gather_arguments{memory_of(g), p.count, p.input, p.output, p.output_stride});
}

}  // namespace

void all_gather(const peer_group& g, const all_gather_params& p, stream& s) {
  check_peers(g, p.count * sizeof(float), kernel);
  require_pointer(p.input, kernel, "input");
  require_pointer(p.output, kernel, "output");
  require_field(p.output_stride >= p.count, kernel, "output_stride",
                std::to_string(p.output_stride), "count and more");
  if (p.count == 0) return;
  const bool by_four =
      p.count % 4 == 0 && p.output_stride % 4 == 0 && aligned_to(16, {p.input, p.output});
  by_four ? run<4>(g, p, s) : run<1>(g, p, s);
}

}  // namespace octavo::gpu
