// Threads that meet: barriers, warp-wide operations, atomics, cooperative launches,
// and the reports of those that never do.
#include "gpu/simt/gang.hpp"

#include <numeric>

#include "gpu/simt/test_support.hpp"
#include "tests/support/catch.hpp"

namespace octavo::gpu::simt {
namespace {

using Catch::Matchers::ContainsSubstring;

std::vector<int> first_integers(int n) {
  std::vector<int> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

__global__ void reverse_in_block(const int* in, int* out) {
  OCTAVO_SHARED(raw);
  auto* shared = reinterpret_cast<int*>(raw);
  const unsigned t = threadIdx.x + blockDim.x * threadIdx.y;
  const unsigned n = blockDim.x * blockDim.y;
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  shared[t] = load_global(in + block * n + t);
  __syncthreads();
  store_global(out + block * n + t, shared[n - 1 - t]);
}

__global__ void count_votes(const int* in, int* out) {
  const int v = in[threadIdx.x];
  const int counted = __syncthreads_count(v % 3 == 0);
  const int any = __syncthreads_or(v == 47);
  const int all = __syncthreads_and(v < 47);
  out[threadIdx.x] = counted * 100 + any * 10 + all;
}

/// Eight results a lane, from a warp whose lane l holds in[l].
__global__ void warp_functions(const int* in, int* out) {
  const int v = in[threadIdx.x];
  int* mine = out + 8 * threadIdx.x;
  mine[0] = __shfl_sync(full_mask, v, 5);
  mine[1] = __shfl_up_sync(full_mask, v, 3);
  mine[2] = __shfl_down_sync(full_mask, v, 30);
  mine[3] = __shfl_xor_sync(full_mask, v, 16);
  mine[4] = __shfl_sync(full_mask, v, 9, 8);
  mine[5] = static_cast<int>(__ballot_sync(full_mask, v % 2));
  mine[6] = static_cast<int>(__match_any_sync(full_mask, v / 16));
  mine[7] = __reduce_add_sync(full_mask, v);
}

/// Halves of a warp that meet apart, at the same operation with other masks.
__global__ void divided_warp(const int* in, int* out) {
  const int v = in[threadIdx.x];
  const bool upper = threadIdx.x >= 16;
  const unsigned mask = upper ? 0xffff0000U : 0x0000ffffU;
  out[threadIdx.x] = __shfl_sync(mask, v, upper ? 31 : 0);
}

__global__ void half_leaves(const int* in, int* out) {
  if (threadIdx.x % 2 == 1) return;
  __syncthreads();
  out[threadIdx.x] = static_cast<int>(__ballot_sync(full_mask, in[threadIdx.x] < 1000));
}

__global__ void add_up(const int* in, int* out) {
  atomicAdd(out, in[blockIdx.x * blockDim.x + threadIdx.x]);
  atomicMax(out + 1, in[blockIdx.x * blockDim.x + threadIdx.x]);
  atomicCAS(out + 2, 0, static_cast<int>(blockIdx.x) + 1);
}

/// Warp 1 hands values to warp 0 at a named barrier, without the other two warps.
__global__ void two_warps_meet(const int* in, int* out) {
  OCTAVO_SHARED(raw);
  auto* shared = reinterpret_cast<int*>(raw);
  const unsigned t = threadIdx.x;
  if (t / 32 == 1) {
    shared[t - 32] = in[t];
    named_barrier_arrive(3, 64);
  } else if (t / 32 == 0) {
    named_barrier_sync(3, 64);
    out[t] = shared[t];
  }
}

/// Each block waits for the one after it.
__global__ void chain_of_blocks(const int*, int* out) {
  const unsigned next = blockIdx.x + 1;
  if (threadIdx.x == 0) {
    if (next < gridDim.x) {
      while (load_acquire(out + next) == 0) spin_pause();
    }
    store_release(out + blockIdx.x, static_cast<int>(gridDim.x - blockIdx.x));
  }
  __syncthreads();
}

__global__ void divergent_barrier(const int*, int* out) {
  if (threadIdx.x < 16) {
    __syncthreads();
  } else {
    __syncwarp();
  }
  out[0] = 1;
}

__global__ void lane_outside_of_mask(const int*, int*) {
  __syncwarp(0xfU);
}

__global__ void waits_forever(const int* in, int*) {
  while (load_acquire(in) == 0) spin_pause();
}

TEST_CASE("a barrier shows every thread what the others wrote before it") {
  for_each_schedule([](const char* name) {
    INFO(name);
    const auto out =
        run_kernel({dim3(2, 3, 2), dim3(25, 4), 400}, reverse_in_block, first_integers(1200), 1200);
    for (int i = 0; i < 1200; ++i) {
      REQUIRE(out[static_cast<std::size_t>(i)] == i / 100 * 100 + 99 - i % 100);
    }
  });
}

TEST_CASE("barriers that vote count all threads") {
  for_each_schedule([](const char* name) {
    INFO(name);
    const auto out = run_kernel({dim3(1), dim3(48)}, count_votes, first_integers(48), 48);
    for (const int v : out) REQUIRE(v == 16 * 100 + 10);
  });
}

TEST_CASE("warp functions give what the CUDA guide says") {
  for_each_schedule([](const char* name) {
    INFO(name);
    const auto out = run_kernel({dim3(1), dim3(32)}, warp_functions, first_integers(32), 256);
    for (int lane = 0; lane < 32; ++lane) {
      const int* mine = out.data() + 8 * lane;
      CHECK(mine[0] == 5);
      CHECK(mine[1] == (lane >= 3 ? lane - 3 : lane));
      CHECK(mine[2] == (lane < 2 ? lane + 30 : lane));
      CHECK(mine[3] == (lane + 16) % 32);
      CHECK(mine[4] == lane / 8 * 8 + 1);
      CHECK(mine[5] == static_cast<int>(0xaaaaaaaaU));
      CHECK(mine[6] == static_cast<int>(lane < 16 ? 0x0000ffffU : 0xffff0000U));
      CHECK(mine[7] == 496);
    }
  });
}

TEST_CASE("parts of a warp meet by their masks") {
  for_each_schedule([](const char* name) {
    INFO(name);
    const auto out = run_kernel({dim3(1), dim3(32)}, divided_warp, first_integers(32), 32);
    for (std::size_t lane = 0; lane < 32; ++lane) REQUIRE(out[lane] == (lane < 16 ? 0 : 31));
  });
}

TEST_CASE("threads that have ended hold nobody up") {
  for_each_schedule([](const char* name) {
    INFO(name);
    const auto out = run_kernel({dim3(1), dim3(64)}, half_leaves, first_integers(64), 64);
    for (std::size_t t = 0; t < 64; t += 2) REQUIRE(out[t] == 0x55555555);
  });
}

TEST_CASE("atomics lose nothing, on one OS thread or three") {
  const int threads = GENERATE(1, 3);
  for_each_schedule([&](const char* name) {
    INFO(name);
    const scoped_options scope;
    current_options().threads = threads;
    const auto out = run_kernel({dim3(20), dim3(50)}, add_up, first_integers(1000), 3);
    CHECK(out[0] == 499500);
    CHECK(out[1] == 999);
    CHECK((out[2] >= 1 && out[2] <= 20));
  });
}

TEST_CASE("a named barrier joins only the threads that come to it") {
  for_each_schedule([](const char* name) {
    INFO(name);
    const auto out = run_kernel({dim3(1), dim3(128), 128}, two_warps_meet, first_integers(128), 32);
    for (std::size_t t = 0; t < 32; ++t) REQUIRE(out[t] == static_cast<int>(t) + 32);
  });
}

TEST_CASE("blocks of a cooperative launch can wait for each other in any order") {
  for_each_schedule([](const char* name) {
    INFO(name);
    const auto out =
        run_kernel({dim3(7), dim3(32), 0, true}, chain_of_blocks, first_integers(1), 7);
    for (std::size_t b = 0; b < 7; ++b) REQUIRE(out[b] == 7 - static_cast<int>(b));
  });
}

TEST_CASE("a barrier that not all threads reach ends in a report, and the next launch works") {
  for_each_schedule([](const char* name) {
    INFO(name);
    const auto error = error_of([] {
      run_kernel({dim3(1), dim3(32)}, divergent_barrier, first_integers(1), 1);
    });
    CHECK_THAT(error, ContainsSubstring("deadlock"));
    CHECK_THAT(error, ContainsSubstring("threads 0 to 15: wait at __syncthreads"));
    CHECK_THAT(error, ContainsSubstring("threads 16 to 31: wait at __syncwarp, 0xffffffff"));
    const auto out = run_kernel({dim3(1), dim3(32)}, divided_warp, first_integers(32), 32);
    CHECK(out[20] == 31);
  });
}

TEST_CASE("errors within a kernel name it, the block and the thread") {
  const auto error = error_of([] {
    run_kernel({dim3(1), dim3(32), 0, false, "narrow"}, lane_outside_of_mask, first_integers(1), 1);
  });
  CHECK_THAT(error, ContainsSubstring("__syncwarp in narrow, block (0, 0, 0), thread (4, 0, 0)"));
  CHECK_THAT(error, ContainsSubstring("not in its own mask"));
}

TEST_CASE("a thread may spin in a cooperative launch only, and not for ever") {
  const auto apart = error_of([] {
    run_kernel({dim3(1), dim3(1)}, waits_forever, first_integers(1), 1);
  });
  CHECK_THAT(apart, ContainsSubstring("not cooperative"));
  const scoped_options scope;
  current_options().spin_seconds_max = 0.01;
  const auto together = error_of([] {
    run_kernel({dim3(1), dim3(1), 0, true}, waits_forever, first_integers(1), 1);
  });
  CHECK_THAT(together, ContainsSubstring("spinning"));
}

TEST_CASE("shapes that no device accepts are refused at the launch") {
  const auto refusal = [](const launch_shape& shape) {
    return error_of([&] { run_kernel(shape, half_leaves, first_integers(1), 1); });
  };
  CHECK_THAT(refusal({dim3(1), dim3(1025)}), ContainsSubstring("1025 threads"));
  CHECK_THAT(refusal({dim3(0), dim3(32)}), ContainsSubstring("0 x 1 x 1 blocks"));
  CHECK_THAT(refusal({dim3(1, 65536), dim3(32)}), ContainsSubstring("65536"));
  CHECK_THAT(refusal({dim3(1), dim3(32), 256 << 10}), ContainsSubstring("262144 bytes of shared"));
}

}  // namespace
}  // namespace octavo::gpu::simt
