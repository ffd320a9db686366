// Ranks that do not wait for each other, on purpose: their sums must be wrong. And what
// keeps those right that do.
// Emulated only: a device has no schedules to vary.
#if !defined(OCTAVO_NATIVE_CUDA)
#include "gpu/kernels/all_reduce/all_reduce.cuh"
#include "gpu/kernels/all_reduce/peer_launching.hpp"
#include "gpu/kernels/all_reduce/test_ranks.hpp"
#include "gpu/kernels/common/test_rows.hpp"
#include "gpu/runtime/launch.hpp"
#include "gpu/simt/schedules.hpp"
#include "tests/support/catch.hpp"

using namespace octavo::gpu;

namespace {

struct no_meeting {
  static __device__ void wait(const peer_memory&, int, int) { __syncthreads(); }
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
    all_reduce_arguments<float, float, float> a{};
    a.peers = memory_of(g);
    a.rows = rows;
    a.input = input.data();
    a.first.output = sum.data();
    a.first.width = width;
    launch(s, {dim3(2), dim3(width), norm_shared_bytes(width), true},
           all_reduce_rows<two_shot, 1, float, float, float, Meeting>, a);
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

// Or a slot would be written while it is still read: by a block of another count, which
// holds it for the other one.
TEST_CASE("blocks that have no rows of a call count it too") {
  const test_ranks peers(1, 3, 5 * 8 * sizeof(float));
  stream s;
  auto x = on_device(s, std::vector<float>(5 * 8, 1));
  all_reduce_params p;
  p.type = p.output_type = dtype::float32;
  p.width = 8;
  p.input = p.output = x.data();
  for (const int rows : {2, 1, 5}) {
    p.rows = rows;
    all_reduce(peers.of(0), p, s);
  }
  peer_flags flags;
  copy_to_host(s, &flags, peers.of(0).memory[0], sizeof(flags));
  s.synchronize();
  for (const int calls : flags.calls) CHECK(calls == 3);
}

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
