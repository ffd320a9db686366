// Checks parameters of rank_sum.hpp and chooses the instance of its kernel.
#include "gpu/kernels/rank_sum/rank_sum.hpp"

#include <algorithm>

#include "gpu/kernels/common/launching.hpp"
#include "gpu/kernels/rank_sum/rank_sum.cuh"
#include "gpu/runtime/launch.hpp"

namespace octavo::gpu {

void rank_sum(const rank_sum_params& p, stream& s) {
  constexpr const char* kernel = "rank_sum";
  require_range(p.ranks, 1, rank_sum_max, kernel, "ranks");
  require_range(p.count, 0, std::int64_t{1} << 40, kernel, "count");
  rank_parts parts{};
  for (int rank = 0; rank < p.ranks; ++rank) {
    require_pointer(p.parts[rank], kernel, "parts");
    parts.of[rank] = p.parts[rank];
  }
  require_pointer(p.output, kernel, "output");
  if (p.count == 0) return;
  with_float_type(p.type, kernel, "type", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto blocks = static_cast<unsigned>(std::min<std::int64_t>((p.count + 255) / 256, 1024));
    launch_shape shape{dim3(blocks), dim3(256)};
    shape.name = kernel;
    launch(s, shape, sum_ranks<T>, parts, p.ranks, p.count, static_cast<T*>(p.output));
  });
}

}  // namespace octavo::gpu
