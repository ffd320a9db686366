// Instances of attend_wide.
#include "gpu/kernels/paged_attention/wide.cuh"

#include "gpu/kernels/paged_attention/launchers.cuh"

namespace octavo::gpu {

void launch_wide(const paged_attention_run& run, stream& s) {
  with_types(run.shape, [&](auto type, auto kv_type) {
    with_head_dim(run.shape, [&](auto dim) {
      using T = typename decltype(type)::type;
      using KV = typename decltype(kv_type)::type;
      using config = wide_config<T, KV, decltype(dim)::value>;
      launch_items(run, s, run.launch.wide, config::threads, wide_layout<config>::bytes,
                   attend_wide<config>, arguments_of<T, KV>(run, run.capacity.wide_offset()));
    });
  });
}

}  // namespace octavo::gpu
