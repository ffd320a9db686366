// Ranks that do not wait for each other, on purpose: their sums must be wrong.
// Emulated only: a device has no schedules to vary.
#if !defined(OCTAVO_NATIVE_CUDA)
#include "gpu/kernels/all_reduce/all_reduce.cuh"
#include "gpu/kernels/all_reduce/test_ranks.hpp"
#include "gpu/kernels/common/test_rows.hpp"
#include "gpu/runtime/launch.hpp"
#include "gpu/simt/schedules.hpp"
#include "tests/support/catch.hpp"

using namespace octavo::gpu;

namespace {

struct no_meeting {
  static __device__ void wait(peer_flags* const*, int, int, int, int) { __syncthreads(); }
};

/// Does the sum of two ranks' ones come out as twos on both?
template <bool two_shot, class Meeting>
bool sums_ones() {
  constexpr int width = 64;
  constexpr int rows = 4;
  constexpr std::size_t bytes = rows * width * sizeof(float);
  const test_ranks peers(2, 2, bytes);
  bool right[2] = {};
  const auto rank = [&](const peer_group& g) {
    stream s;
    auto input = on_device(s, std::vector<float>(rows * width, 1));
    device_array<float> sum(rows * width);
    all_reduce_arguments<float, __half, float> a{};
    for (int r = 0; r < 2; ++r) a.flags[r] = static_cast<peer_flags*>(g.memory[r]);
    a.payload_elements = bytes / sizeof(float);
    a.ranks = 2;
    a.rank = g.rank;
    a.rows = rows;
    a.input = input.data();
    a.sum = sum.data();
    a.first.width = width;
    launch(s, {dim3(2), dim3(width), norm_shared_bytes(width), true},
           all_reduce_rows<two_shot, 1, float, __half, float, Meeting>, a);
    const auto twos = on_host(s, sum);
    right[g.rank] = std::all_of(twos.begin(), twos.end(), [](float v) { return v == 2; });
  };
  if constexpr (std::is_same_v<Meeting, no_meeting>) {
    // One rank is always first.
    rank(peers.of(0));
    rank(peers.of(1));
  } else {
    peers.run(rank);
  }
  return right[0] && right[1];
}

}  // namespace

TEST_CASE("ranks that do not wait for each other get wrong sums") {
  simt::for_each_schedule([](const char* name) {
    INFO(name);
    CHECK(sums_ones<false, peer_meeting>());
    CHECK(sums_ones<true, peer_meeting>());
    CHECK_FALSE(sums_ones<false, no_meeting>());
    CHECK_FALSE(sums_ones<true, no_meeting>());
  });
}
#endif
