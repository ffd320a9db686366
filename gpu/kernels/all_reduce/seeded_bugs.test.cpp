// Ranks that do not wait for each other, on purpose: their sums must be wrong. And what
// keeps those right that do.
// Emulated only: a device has no schedules to vary.
#if !defined(OCTAVO_NATIVE_CUDA)
#include <algorithm>
#include <atomic>
#include <climits>

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

TEST_CASE("the numbers of calls wrap around") {
  constexpr std::size_t values = 4 * 8;
  const test_ranks peers(2, 2, values * sizeof(float));
  peer_flags flags;
  std::fill_n(&flags.arrived[0][0][0], sizeof(flags) / sizeof(int), INT_MAX - 2);
  stream s;
  for (int rank = 0; rank < 2; ++rank) {
    copy_to_device(s, peers.of(0).memory[rank], &flags, sizeof(flags));
  }
  s.synchronize();
  std::atomic<int> wrong = 0;
  peers.run([&](const peer_group& g) {
    stream on;
    auto x = on_device(on, std::vector<float>(values, 1));
    all_reduce_params p;
    p.type = p.output_type = dtype::float32;
    p.rows = 4;
    p.width = 8;
    p.input = p.output = x.data();
    for (int call = 0; call < 5; ++call) {
      p.algorithm = call % 2 == 0 ? all_reduce_algorithm::one_shot : all_reduce_algorithm::two_shot;
      all_reduce(g, p, on);
    }
    for (const float sum : on_host(on, x)) wrong += sum != 32 ? 1 : 0;
  });
  CHECK(wrong == 0);
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
