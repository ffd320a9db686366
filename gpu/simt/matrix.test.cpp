// Tensor core products and ldmatrix against plain matrix products, with the index
// formulas of the PTX ISA written out once more.
#include <cmath>
#include <random>

#include "gpu/simt/test_support.hpp"
#include "tests/support/catch.hpp"

namespace octavo::gpu::simt {
namespace {

/// Element i of a lane's fragment of a, PTX ISA 9.7.14.5: m16n8k16 for `step` 2,
/// m16n8k32 of 8-bit elements for `step` 4.
template <int step>
__device__ int row_of_a(int lane, int i) {
  return lane / 4 + (i / step % 2 == 0 ? 0 : 8);
}

template <int step>
__device__ int column_of_a(int lane, int i) {
  return lane % 4 * step + i % step + (i < 2 * step ? 0 : 4 * step);
}

template <int step>
__device__ int row_of_b(int lane, int i) {
  return lane % 4 * step + i % step + (i < step ? 0 : 4 * step);
}

/// Multiplies in[0, 16 k) by in[16 k, 24 k), both by rows, onto what `out` gets.
template <class T, int step>
__global__ void multiply_once(const T* in, float* out) {
  constexpr int k = 8 * step;
  const int lane = static_cast<int>(threadIdx.x);
  T a[4 * step];
  T b[2 * step];
  for (int i = 0; i < 4 * step; ++i)
    a[i] = in[row_of_a<step>(lane, i) * k + column_of_a<step>(lane, i)];
  for (int i = 0; i < 2 * step; ++i) b[i] = in[16 * k + row_of_b<step>(lane, i) * 8 + lane / 4];
  std::uint32_t packed_a[4];
  std::uint32_t packed_b[2];
  memcpy(packed_a, static_cast<const void*>(a), sizeof packed_a);
  memcpy(packed_b, static_cast<const void*>(b), sizeof packed_b);
  float d[4] = {1, 2, 3, 4};
  if constexpr (step == 4) {
    mma_16x8x32(d, packed_a, packed_b);
  } else {
    mma_16x8x16<T>(d, packed_a, packed_b);
  }
  for (int i = 0; i < 4; ++i) {
    out[(lane / 4 + (i < 2 ? 0 : 8)) * 8 + lane % 4 * 2 + i % 2] = d[i];
  }
}

template <class T, int step>
void check_product(float scale) {
  constexpr int k = 8 * step;
  std::mt19937 random(11);
  std::vector<T> in(24 * k);
  for (auto& x : in) x = T(scale * static_cast<float>(static_cast<int>(random() % 17) - 8));
  for_each_schedule([&](const char* name) {
    INFO(name);
    const auto out = run_kernel({dim3(1), dim3(32)}, multiply_once<T, step>, in, 128);
    for (int m = 0; m < 16; ++m) {
      for (int n = 0; n < 8; ++n) {
        double expected = 1 + n % 2 + (m < 8 ? 0 : 2);
        for (int i = 0; i < k; ++i) {
          expected += static_cast<double>(static_cast<float>(in[m * k + i])) *
                      static_cast<double>(static_cast<float>(in[16 * k + i * 8 + n]));
        }
        REQUIRE(static_cast<double>(out[m * 8 + n]) == expected);
      }
    }
  });
}

TEST_CASE("mma_16x8x16 multiplies fp16 and bf16 matrices") {
  check_product<__half, 2>(1.0F);
  check_product<__nv_bfloat16, 2>(0.25F);
}

TEST_CASE("mma_16x8x32 multiplies e4m3 matrices") {
  check_product<__nv_fp8_e4m3, 4>(0.5F);
}

/// Every 16-bit pattern times one, on the diagonal.
template <class T>
__global__ void decode_all(const T* in, float* out) {
  const unsigned lane = threadIdx.x;
  std::uint32_t a[4] = {};
  std::uint32_t b[2] = {};
  // a(g, 0) = the element, b(0, 0) = one.
  if (lane % 4 == 0) a[0] = bits_as<std::uint16_t>(in[blockIdx.x * 8 + lane / 4]);
  if (lane == 0) b[0] = bits_as<std::uint16_t>(T(1.0F));
  float d[4] = {};
  mma_16x8x16<T>(d, a, b);
  if (lane % 4 == 0) out[blockIdx.x * 8 + lane / 4] = d[0];
}

template <class T>
void check_every_value() {
  std::vector<T> in(65536);
  for (std::uint32_t i = 0; i < 65536; ++i) in[i] = bits_as<T>(static_cast<std::uint16_t>(i));
  const auto out = run_kernel({dim3(65536 / 8), dim3(32)}, decode_all<T>, in, 65536);
  for (std::size_t i = 0; i < 65536; ++i) {
    const float expected = static_cast<float>(in[i]);
    // Rows next to an infinity or NaN multiply it by zero; their own values are what counts.
    if (std::isnan(expected)) {
      REQUIRE(std::isnan(out[i]));
    } else {
      REQUIRE(out[i] == expected);
    }
  }
}

TEST_CASE("tensor cores read every fp16 and bf16 value, subnormals and infinities too") {
  check_every_value<__half>();
  check_every_value<__nv_bfloat16>();
}

/// in: 32 rows of 8 elements; lane l gives row order[l] = 31 - l.
template <int count, bool transposed>
__global__ void load_fragments(const std::uint16_t* in, std::uint32_t* out) {
  OCTAVO_SHARED(raw);
  auto* shared = reinterpret_cast<std::uint16_t*>(raw);
  const unsigned lane = threadIdx.x;
  for (unsigned i = 0; i < 8; ++i) shared[8 * lane + i] = in[8 * lane + i];
  __syncwarp();
  std::uint32_t r[4] = {};
  const auto* row = shared + 8 * (31 - lane);
  if constexpr (count == 4) {
    transposed ? ldmatrix_x4_trans(r, row) : ldmatrix_x4(r, row);
  } else {
    std::uint32_t two[2];
    transposed ? ldmatrix_x2_trans(two, row) : ldmatrix_x2(two, row);
    r[0] = two[0];
    r[1] = two[1];
  }
  for (unsigned i = 0; i < 4; ++i) out[4 * lane + i] = r[i];
}

template <int count, bool transposed>
void check_fragments() {
  std::vector<std::uint16_t> in(256);
  for (std::size_t i = 0; i < 256; ++i) in[i] = static_cast<std::uint16_t>(1000 + i);
  for_each_schedule([&](const char* name) {
    INFO(name);
    const auto out =
        run_kernel({dim3(1), dim3(32), 512}, load_fragments<count, transposed>, in, 128);
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned matrix = 0; matrix < count; ++matrix) {
        const auto element = [&](unsigned row, unsigned column) {
          return 1000 + (31 - (8 * matrix + row)) * 8 + column;
        };
        const unsigned r = lane / 4;
        const unsigned c = 2 * (lane % 4);
        const unsigned low = transposed ? element(c, r) : element(r, c);
        const unsigned high = transposed ? element(c + 1, r) : element(r, c + 1);
        REQUIRE(out[4 * lane + matrix] == (low | high << 16));
      }
    }
  });
}

TEST_CASE("ldmatrix gives each lane its fragments, plain and transposed") {
  check_fragments<4, false>();
  check_fragments<4, true>();
  check_fragments<2, false>();
  check_fragments<2, true>();
}

}  // namespace
}  // namespace octavo::gpu::simt
