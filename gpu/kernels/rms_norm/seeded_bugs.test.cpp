// A barrier is left out of the reduction on purpose: the schedules must show it.
// Emulated only: a device has no schedules to vary.
#if !defined(OCTAVO_NATIVE_CUDA)
#include <vector>

#include "gpu/kernels/common/test_rows.hpp"
#include "gpu/kernels/rms_norm/rms_norm.cuh"
#include "gpu/runtime/launch.hpp"
#include "gpu/simt/schedules.hpp"
#include "tests/support/catch.hpp"

using namespace octavo::gpu;

namespace {

struct no_barrier {
  static __device__ void wait() {}
};

/// Do all elements of a row of ones come out as ones, without a device error?
template <class Barrier>
bool norms_ones() {
  constexpr int width = 256;
  stream s;
  auto input = on_device(s, std::vector<__half>(width, __half(1.0F)));
  auto weight = on_device(s, std::vector<float>(width, 1));
  device_array<__half> output(width);
  rms_norm_arguments<__half, float> a;
  a.first.weight = weight.data();
  a.first.output = output.data();
  a.first.width = width;
  a.input = input.data();
  launch(s, {dim3(1), dim3(width), norm_shared_bytes(width)},
         rms_norm_rows<1, __half, float, Barrier>, a);
  const auto ones = on_host(s, output);
  return std::all_of(ones.begin(), ones.end(), [](__half v) { return float(v) == 1.0F; });
}

}  // namespace

TEST_CASE("a reduction without its barriers fails in some schedule") {
  int failed = 0;
  simt::for_each_schedule([&](const char* name) {
    INFO(name);
    CHECK(norms_ones<block_barrier>());
    failed += norms_ones<no_barrier>() ? 0 : 1;
  });
  CHECK(failed > 0);
}
#endif
