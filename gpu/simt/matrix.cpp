// Tensor core products and ldmatrix, done by the last lane of a warp to arrive.
// Fragment layouts follow the PTX ISA, section "Warp Level Matrix Instructions".
#include <bit>
#include <cstring>

#include "gpu/simt/bank_conflicts.hpp"
#include "gpu/simt/gang.hpp"

namespace octavo::gpu::simt {
namespace {

constexpr int rows = 16;
constexpr int columns = 8;

/// What a lane brings to a product: accumulators d, and packed a and b.
struct product {
  float* d;
  const std::uint32_t* a;
  const std::uint32_t* b;
};

product& of(void* lane) {
  return *static_cast<product*>(lane);
}

void require_full_warp(const char* call, std::uint32_t mask) {
  if (mask != full_mask) fail(call, "not all 32 lanes of the warp take part");
}

float from_half(std::uint32_t bits) {
  const std::uint32_t magnitude = bits & 0x7fff;
  // The exponent's bias differs by 112; a product brings subnormals along.
  float value = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
  if (magnitude >= 0x7c00) value = std::bit_cast<float>(0x7f800000 | (magnitude & 0x3ff) << 13);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | (bits & 0x8000) << 16);
}

float from_bfloat(std::uint32_t bits) {
  return std::bit_cast<float>(bits << 16);
}

/// 8 bits: sign, 4 of exponent with bias 7, 3 of mantissa; all ones is NaN.
float from_e4m3(std::uint32_t bits) {
  const std::uint32_t magnitude = bits & 0x7f;
  float value = std::bit_cast<float>(magnitude << 20) * 0x1p120F;
  if (magnitude == 0x7f) value = std::bit_cast<float>(0x7fc00000U);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | (bits & 0x80) << 24);
}

/// d += a * b with `depth` columns of a, `packed` elements of `bits` bits in a
/// register. Lane 4 g + t holds rows g and g + 8, and consecutive elements from
/// packed * t on in the first half of the depth and in the second.
template <int depth, int packed, float (*decode)(std::uint32_t)>
void multiply(void* const (&lanes)[32], std::uint32_t mask) {
  require_full_warp("mma.sync", mask);
  constexpr int bits = 32 / packed;
  constexpr std::uint32_t element = (std::uint64_t{1} << bits) - 1;
  float a[rows][depth];
  float b[depth][columns];
  float c[rows][columns];
  for (int lane = 0; lane < 32; ++lane) {
    const auto& p = of(lanes[lane]);
    const int g = lane / 4;
    const int t = lane % 4;
    for (int i = 0; i < packed; ++i) {
      for (int r = 0; r < 4; ++r) {
        const int k = packed * t + i + r / 2 * depth / 2;
        a[g + r % 2 * 8][k] = decode(p.a[r] >> bits * i & element);
      }
      for (int r = 0; r < 2; ++r) {
        b[packed * t + i + r * depth / 2][g] = decode(p.b[r] >> bits * i & element);
      }
    }
    for (int i = 0; i < 4; ++i) c[g + i / 2 * 8][2 * t + i % 2] = p.d[i];
  }
  for (auto m = 0; m < rows; ++m) {
    for (int k = 0; k < depth; ++k) {
      for (int n = 0; n < columns; ++n) c[m][n] += a[m][k] * b[k][n];
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      of(lanes[lane]).d[i] = c[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
    }
  }
  ++gang::current().tally.matrix_products;
}

/// What a lane brings to ldmatrix, and takes.
struct matrix_load {
  std::uint32_t* registers;
  const unsigned char* row;
};

template <int count, bool transposed>
void load_matrices(void* const (&lanes)[32], std::uint32_t mask) {
  require_full_warp("ldmatrix", mask);
  auto& g = gang::current();
  const unsigned char* addresses[32];
  for (int i = 0; i < 32; ++i) addresses[i] = static_cast<matrix_load*>(lanes[i])->row;
  for (int matrix = 0; matrix < count; ++matrix) {
    std::uint16_t elements[8][8];
    std::uint32_t offsets[8];
    for (int r = 0; r < 8; ++r) {
      const unsigned char* row = addresses[8 * matrix + r];
      std::memcpy(elements[r], row, sizeof elements[r]);
      offsets[r] = static_cast<std::uint32_t>(row - g.running().block->shared);
    }
    if (g.how().count_bank_conflicts) count_matrix_rows(g, offsets);
    for (int lane = 0; lane < 32; ++lane) {
      const int row = lane / 4;
      const int column = lane % 4 * 2;
      const std::uint32_t low = transposed ? elements[column][row] : elements[row][column];
      const std::uint32_t high = transposed ? elements[column + 1][row] : elements[row][column + 1];
      static_cast<matrix_load*>(lanes[lane])->registers[matrix] = low | high << 16;
    }
  }
}

}  // namespace

void multiply_16x8x16(fragment type, float (&d)[4], const std::uint32_t (&a)[4],
                      const std::uint32_t (&b)[2]) {
  product mine{d, a, b};
  collective(full_mask, "mma.sync.m16n8k16", &mine,
             type == fragment::float16 ? multiply<16, 2, from_half> : multiply<16, 2, from_bfloat>);
}

void multiply_16x8x32_e4m3(float (&d)[4], const std::uint32_t (&a)[4],
                           const std::uint32_t (&b)[2]) {
  product mine{d, a, b};
  collective(full_mask, "mma.sync.m16n8k32", &mine, multiply<32, 4, from_e4m3>);
}

void ldmatrix(int count, bool transposed, std::uint32_t* registers, const void* row) {
  // Lanes beyond the matrices that are asked for give an address that is not read.
  if (static_cast<int>(current_lane()) < 8 * count) check_shared(row, 16, "ldmatrix");
  matrix_load mine{registers, static_cast<const unsigned char*>(row)};
  collective_work work = nullptr;
  switch (count) {
    case 1:
      work = transposed ? load_matrices<1, true> : load_matrices<1, false>;
      break;
    case 2:
      work = transposed ? load_matrices<2, true> : load_matrices<2, false>;
      break;
    default:
      work = transposed ? load_matrices<4, true> : load_matrices<4, false>;
  }
  collective(full_mask, "ldmatrix", &mine, work);
}

}  // namespace octavo::gpu::simt
