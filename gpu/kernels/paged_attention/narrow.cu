// Instances of attend_narrow.
#include "gpu/kernels/paged_attention/narrow.cuh"

#include "gpu/kernels/paged_attention/launchers.cuh"

namespace octavo::gpu {

void launch_narrow(const paged_attention_run& run, stream& s) {
  with_types(run.shape, [&](auto type, auto kv_type) {
    with_head_dim(run.shape, [&](auto dim) {
      using T = typename decltype(type)::type;
      using KV = typename decltype(kv_type)::type;
      using config = narrow_config<T, KV, decltype(dim)::value>;
      launch_items(run, s, run.launch.narrow, config::threads, narrow_layout<config>::bytes,
                   attend_narrow<config>, arguments_of<T, KV>(run, 0));
    });
  });
}

}  // namespace octavo::gpu
