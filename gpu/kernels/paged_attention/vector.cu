// Instances of attend_vector.
#include "gpu/kernels/paged_attention/vector.cuh"

#include "gpu/kernels/paged_attention/launchers.cuh"

namespace octavo::gpu {

void launch_vector(const paged_attention_run& run, stream& s) {
  with_types(run.shape, [&](auto type, auto kv_type) {
    with_number<64, 128>(run.shape.head_dim, [&](auto dim) {
      with_number<1, 2, 3>(run.shape.group(), [&](auto group) {
        using T = typename decltype(type)::type;
        using KV = typename decltype(kv_type)::type;
        using config = vector_config<T, KV, decltype(dim)::value, decltype(group)::value>;
        launch_items(run, s, run.launch.narrow, config::threads, vector_layout<config>::bytes,
                     attend_vector<config>, arguments_of<T, KV>(run, 0));
      });
    });
  });
}

}  // namespace octavo::gpu
