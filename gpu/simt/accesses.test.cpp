// Memory as kernels use it: asynchronous copies, range checks, counts.
#include <numeric>

#include "gpu/simt/test_support.hpp"
#include "tests/support/catch.hpp"

namespace octavo::gpu::simt {

// Not in the unnamed namespace: only then can reports find its name.
__global__ void double_all(const float* in, float* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  store_global(out + i, 2 * load_global(in + i));
}

namespace {

using Catch::Matchers::ContainsSubstring;

std::vector<float> first_floats(std::size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

/// Three groups of one copy each; what has landed after each wait.
__global__ void wait_step_by_step(const float* in, float* out) {
  OCTAVO_SHARED(raw);
  auto* shared = reinterpret_cast<float*>(raw);
  for (int i = 0; i < 3; ++i) {
    cp_async16(shared + 4 * i, in + 4 * i);
    cp_async_commit();
  }
  cp_async16_or_zero(shared + 12, in, false);
  cp_async_wait<2>();
  for (int i = 0; i < 3; ++i) out[i] = shared[4 * i];
  cp_async_wait<0>();
  for (int i = 0; i < 4; ++i) out[3 + i] = shared[4 * i];
  cp_async_commit();
  cp_async_wait<0>();
  out[7] = shared[12];
}

__global__ void read_all_twice(const float* in, float* out) {
  const auto* wide = reinterpret_cast<const float4*>(in);
  const float4 a = load_global(wide + threadIdx.x);
  const float4 b = load_global_streaming(wide + threadIdx.x);
  store_global(out + threadIdx.x, a.x + b.w);
}

__global__ void read_misaligned(const float* in, float* out) {
  out[0] = load_global(reinterpret_cast<const float4*>(in + 1)).x;
}

__global__ void store_beyond_shared(const float*, float*) {
  OCTAVO_SHARED(raw);
  store_shared(reinterpret_cast<float*>(raw) + threadIdx.x, 1.0F);
}

__global__ void read_unwritten_shared(const float*, float* out) {
  OCTAVO_SHARED(raw);
  out[threadIdx.x] = load_shared(reinterpret_cast<const float*>(raw) + threadIdx.x);
}

__global__ void plain_store_past_the_end(const float*, float* out) {
  out[64] = 1;
}

/// Lanes `stride` floats apart.
template <int stride>
__global__ void strided(const float*, float*) {
  OCTAVO_SHARED(raw);
  store_shared(reinterpret_cast<float*>(raw) + stride * threadIdx.x, 1.0F);
}

/// Rows of `bytes` bytes through ldmatrix.
template <int bytes>
__global__ void load_rows(const float*, float*) {
  OCTAVO_SHARED(raw);
  std::uint32_t r[4];
  ldmatrix_x4(r, raw + bytes * threadIdx.x);
}

TEST_CASE("lazy copies land at their wait, eager ones at once") {
  for_each_schedule([](const char* name) {
    INFO(name);
    const auto out = run_kernel({dim3(1), dim3(1), 64}, wait_step_by_step, first_floats(12), 8);
    CHECK(out[0] == 1);
    CHECK(out[3] == 1);
    CHECK(out[4] == 5);
    CHECK(out[5] == 9);
    CHECK(out[7] == 0);
    // Shared memory starts as NaN, which equals nothing. The fourth copy was not committed.
    const bool lazy = current_options().copies == copy_landing::lazy;
    CHECK((out[1] != 5) == lazy);
    CHECK((out[2] != 9) == lazy);
    CHECK((out[6] != 0) == lazy);
  });
}

TEST_CASE("shared memory starts as NaN") {
  const auto out = run_kernel({dim3(1), dim3(4), 16}, read_unwritten_shared, first_floats(1), 4);
  for (const float v : out) CHECK(v != v);
}

TEST_CASE("an access outside of every allocation names kernel, block and thread") {
  const auto read = error_of([] {
    run_kernel({dim3(2), dim3(32)}, double_all, first_floats(50), 64);
  });
  CHECK_THAT(read, ContainsSubstring("double_all, block (1, 0, 0), thread (18, 0, 0)"));
  CHECK_THAT(read, ContainsSubstring("no live device allocation"));
  const auto write = error_of([] {
    run_kernel({dim3(2), dim3(32)}, double_all, first_floats(64), 33);
  });
  CHECK_THAT(write, ContainsSubstring("store to global memory"));
  CHECK_THAT(write, ContainsSubstring("block (1, 0, 0), thread (1, 0, 0)"));
}

TEST_CASE("memory of the host and misaligned addresses are refused") {
  const float on_host[4] = {};
  stream s;
  device_array<float> out(32);
  launch(s, {dim3(1), dim3(4)}, double_all, on_host, out.data());
  CHECK_THAT(error_of([&] { s.synchronize(); }), ContainsSubstring("no live device allocation"));
  CHECK_THAT(error_of([] {
               run_kernel({dim3(1), dim3(1)}, read_misaligned, first_floats(8), 1);
             }),
             ContainsSubstring("not a multiple of 16"));
}

TEST_CASE("an access outside of the block's shared memory is refused") {
  const auto error = error_of([] {
    run_kernel({dim3(1), dim3(32), 64}, store_beyond_shared, first_floats(1), 1);
  });
  CHECK_THAT(error, ContainsSubstring("offset 64"));
  CHECK_THAT(error, ContainsSubstring("thread (16, 0, 0)"));
}

TEST_CASE("a plain store past the end of an allocation is found after the launch") {
  CHECK_THAT(error_of([] {
               run_kernel({dim3(1), dim3(1)}, plain_store_past_the_end, first_floats(1), 64);
             }),
             ContainsSubstring("256 bytes was written past its end"));
}

TEST_CASE("a launch with more shared memory than some supported device has is refused") {
  const auto of = [](std::size_t shared_bytes) {
    return error_of([&] {
      run_kernel({dim3(1), dim3(32), shared_bytes}, strided<1>, first_floats(1), 1);
    });
  };
  CHECK(of(99 << 10).empty());
  CHECK_THAT(of((99 << 10) + 1), ContainsSubstring("sm_89 has 101376"));
}

TEST_CASE("bytes are counted, all and distinct") {
  const scoped_options scope;
  current_options().count_distinct_bytes = true;
  stream s;
  device_array<float> in(128);
  device_array<float> out(32);
  in.upload(s, first_floats(128));
  reset_counters();
  launch(s, {dim3(1), dim3(32)}, read_all_twice, in.data(), out.data());
  s.synchronize();
  const auto c = counters();
  CHECK(c.launches == 1);
  CHECK(c.blocks == 1);
  CHECK(c.global_bytes_read == 1024);
  CHECK(c.distinct_bytes_read == 512);
  CHECK(c.global_bytes_written == 128);
  CHECK(c.distinct_bytes_written == 128);
}

template <class Kernel>
counts conflicts(Kernel kernel, unsigned shared_bytes) {
  const scoped_options scope;
  current_options().count_bank_conflicts = true;
  reset_counters();
  run_kernel({dim3(1), dim3(32), shared_bytes}, kernel, first_floats(1), 1);
  return counters();
}

TEST_CASE("bank conflicts are counted as the hardware resolves them") {
  CHECK(conflicts(strided<1>, 4096).bank_conflicts == 0);
  CHECK(conflicts(strided<2>, 8192).bank_conflicts == 1);
  CHECK(conflicts(strided<32>, 32 * 32 * 4).bank_conflicts == 31);
  CHECK(conflicts(strided<33>, 32 * 33 * 4).bank_conflicts == 0);
  // Eight rows of 128 bytes begin in the same bank; 16 bytes of padding set them apart.
  CHECK(conflicts(load_rows<128>, 4096).bank_conflicts == 4 * 7);
  CHECK(conflicts(load_rows<144>, 32 * 144).bank_conflicts == 0);
  CHECK(conflicts(load_rows<144>, 32 * 144).shared_wavefronts == 4);
}

}  // namespace
}  // namespace octavo::gpu::simt
