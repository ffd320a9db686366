// Bugs made on purpose: each kernel has a right and a wrong form, and the schedules
// must tell them apart. Which schedules find a bug is stated, so that it stays known
// why all of them are run.
#include <numeric>

#include "gpu/simt/test_support.hpp"
#include "tests/support/catch.hpp"

namespace octavo::gpu::simt {
namespace {

constexpr int threads = 128;
constexpr int tiles = 4;

std::vector<int> first_integers(int n) {
  std::vector<int> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

bool finds(const std::vector<std::string>& failing, const std::string& part) {
  for (const auto& name : failing) {
    if (name.find(part) != std::string::npos) return true;
  }
  return false;
}

/// Each thread takes the value of the thread one warp before it.
template <bool barrier>
__global__ void take_from_earlier_warp(const int* in, int* out) {
  OCTAVO_SHARED(raw);
  auto* shared = reinterpret_cast<int*>(raw);
  const unsigned t = threadIdx.x;
  shared[t] = in[t];
  if (barrier) __syncthreads();
  out[t] = t < 32 ? 0 : shared[t - 32];
}

template <bool wait>
__global__ void copy_through_shared(const int* in, int* out) {
  OCTAVO_SHARED(raw);
  auto* shared = reinterpret_cast<int*>(raw);
  const unsigned t = threadIdx.x;
  cp_async16(shared + 4 * t, in + 4 * t);
  cp_async_commit();
  if (wait) cp_async_wait<0>();
  __syncthreads();
  for (unsigned i = 0; i < 4; ++i) out[4 * t + i] = shared[4 * t + i];
}

/// Adds up tiles of four integers a thread through two slots; each thread reads what
/// the thread one warp later copied. The next tile may only be asked for when all
/// have read the one before, that is, after the barrier.
template <bool after_barrier>
__global__ void add_tiles(const int* in, int* out) {
  OCTAVO_SHARED(raw);
  auto* shared = reinterpret_cast<int*>(raw);
  const unsigned t = threadIdx.x;
  const unsigned other = (t + 32) % threads;
  const auto fetch = [&](int tile) {
    if (tile < tiles) {
      cp_async16(shared + (tile % 2 * threads + t) * 4, in + (tile * threads + t) * 4);
    }
    cp_async_commit();
  };
  int sum = 0;
  fetch(0);
  for (int tile = 0; tile < tiles; ++tile) {
    cp_async_wait<0>();
    if (!after_barrier) fetch(tile + 1);
    __syncthreads();
    if (after_barrier) fetch(tile + 1);
    for (unsigned i = 0; i < 4; ++i) sum += shared[(tile % 2 * threads + other) * 4 + i];
  }
  out[t] = sum;
}

template <bool barrier>
bool taken_right() {
  const auto out = run_kernel({dim3(1), dim3(threads), threads * 4},
                              take_from_earlier_warp<barrier>, first_integers(threads), threads);
  for (int t = 32; t < threads; ++t) {
    if (out[static_cast<std::size_t>(t)] != t - 32) return false;
  }
  return true;
}

template <bool wait>
bool copied_right() {
  const auto in = first_integers(4 * threads);
  return run_kernel({dim3(1), dim3(threads), threads * 16}, copy_through_shared<wait>, in,
                    4 * threads) == in;
}

template <bool after_barrier>
bool added_right() {
  const auto out = run_kernel({dim3(1), dim3(threads), 2 * threads * 16}, add_tiles<after_barrier>,
                              first_integers(tiles * threads * 4), threads);
  for (int t = 0; t < threads; ++t) {
    int expected = 0;
    for (int tile = 0; tile < tiles; ++tile) {
      expected += 4 * (tile * threads + (t + 32) % threads) * 4 + 6;
    }
    if (out[static_cast<std::size_t>(t)] != expected) return false;
  }
  return true;
}

TEST_CASE("a missing barrier is found by LIFO and random orders, not by FIFO") {
  CHECK(schedules_that_fail(taken_right<true>).empty());
  const auto failing = schedules_that_fail(taken_right<false>);
  CHECK(finds(failing, "lifo"));
  CHECK(finds(failing, "random"));
  CHECK_FALSE(finds(failing, "fifo"));
}

TEST_CASE("a missing wait is found where copies land late, not where they land early") {
  CHECK(schedules_that_fail(copied_right<true>).empty());
  const auto failing = schedules_that_fail(copied_right<false>);
  CHECK(failing.size() == 4);
  CHECK(finds(failing, "lazy"));
  CHECK_FALSE(finds(failing, "eager"));
}

TEST_CASE("a copy into a slot that is still read is found by early landing in LIFO order") {
  CHECK(schedules_that_fail(added_right<true>).empty());
  const auto failing = schedules_that_fail(added_right<false>);
  CHECK(finds(failing, "lifo, eager"));
  CHECK_FALSE(finds(failing, "lazy"));
}

TEST_CASE("a missing synchronize leaves the host with what it had") {
  for_each_schedule([](const char* name) {
    INFO(name);
    stream s;
    device_array<int> values(4);
    std::vector<int> host(4, -7);
    values.upload(s, first_integers(4));
    values.download(s, host);
    CHECK(host == std::vector<int>(4, -7));
    s.synchronize();
    CHECK(host == first_integers(4));
  });
}

}  // namespace
}  // namespace octavo::gpu::simt
