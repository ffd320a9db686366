// The matrix product against float64, and its bits against themselves in all
// companies.
#include "cpu/kernels/matmul.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "cpu/kernels/test_matrices.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::cpu;
using model::element_type;

namespace {

struct product {
  std::vector<float> y;
  quantized_rows x;
};

/// All rows by all columns in one call, or in ranges of `range` tiles.
product multiply(const packed_weights& w, const std::vector<float>& values, std::size_t rows,
                 const kernel_table& kernels, std::size_t range = 0, std::size_t terms = 1) {
  product out;
  out.y.assign(rows * w.rows(), std::nanf(""));
  const std::size_t step = range == 0 ? w.row_tiles() : range;
  out.x.resize(rows, w.columns(), terms);
  for (std::size_t m = 0; m < rows; ++m) {
    out.x.quantize(m, values.data() + m * w.columns(), kernels);
  }
  for (std::size_t tile = 0; tile < w.row_tiles(); tile += step) {
    const std::size_t tiles = std::min(step, w.row_tiles() - tile);
    if (w.takes_floats()) {
      matmul(w, float_rows{values.data(), rows, w.columns()}, tile, tiles, out.y.data(), w.rows(),
             kernels);
    } else {
      matmul(w, out.x, tile, tiles, out.y.data(), w.rows(), kernels);
    }
  }
  return out;
}

/// Input k of row m as the kernel sees it.
double seen_input(product& p, const packed_weights& w, const std::vector<float>& values,
                  std::size_t m, std::size_t k) {
  if (w.takes_floats()) return values[m * w.columns() + k];
  double sum = 0;
  for (std::size_t term = 0; term < p.x.terms(); ++term) {
    const block_slot slot = p.x.slot(m, k / 32, term);
    sum += double{*slot.scale} * slot.codes[k % 32];
  }
  return sum;
}

/// Largest difference to float64 on the same codes, as a share of the sum of
/// magnitudes; and on the exact activations, as a share of what rounding them
/// can make: half a scale for every input.
struct errors {
  double arithmetic = 0;
  double quantization = 0;
};

errors compare(product& p, const packed_weights& w, const random_matrix& stored,
               const std::vector<float>& values, std::size_t rows) {
  errors worst;
  std::vector<float> weights(w.columns());
  for (std::size_t n = 0; n < w.rows(); ++n) {
    model::dequantize_row(stored.matrix, static_cast<std::int64_t>(n), weights);
    for (std::size_t m = 0; m < rows; ++m) {
      double seen = 0;
      double exact = 0;
      double magnitude = 1e-30;
      double rounding = 1e-30;
      for (std::size_t k = 0; k < w.columns(); ++k) {
        const double input = seen_input(p, w, values, m, k);
        seen += weights[k] * input;
        exact += double{weights[k]} * values[m * w.columns() + k];
        magnitude += std::fabs(weights[k] * input);
        if (!w.takes_floats()) {
          rounding += std::fabs(weights[k]) * 0.5 * double{*p.x.slot(m, k / 32).scale};
        }
      }
      const double y = p.y[m * w.rows() + n];
      worst.arithmetic = std::max(worst.arithmetic, std::fabs(y - seen) / magnitude);
      worst.quantization =
          std::max(worst.quantization, (std::fabs(y - exact) - 1e-5 * magnitude) / rounding);
    }
  }
  return worst;
}

}  // namespace

TEST_CASE("products agree with float64 for every format, shape and instruction set") {
  struct shape {
    std::int64_t n;
    std::int64_t k;
  };
  for (const isa kind : available_isas()) {
    const kernel_table& kernels = kernels_for(kind);
    for (const element_type type : packable_types()) {
      const bool super = model::info(type).block_elements == 256;
      for (const shape s : {shape{1, 256}, shape{9, super ? 768 : 576}, shape{24, 1536}}) {
        for (const std::size_t rows : {1U, 3U, 8U, 13U}) {
          INFO(to_string(kind) << " " << model::info(type).name << " N=" << s.n << " K=" << s.k
                               << " M=" << rows);
          const random_matrix stored = make_random_matrix(type, s.n, s.k, 11);
          const packed_weights w(stored.matrix, "w");
          const auto values = make_random_rows(rows, w.columns(), 12);
          for (const std::size_t terms : {1U, 2U}) {
            product p = multiply(w, values, rows, kernels, 0, terms);
            const errors worst = compare(p, w, stored, values, rows);
            // Float sums of 1536 terms; codes offset by half their range.
            CHECK(worst.arithmetic < 4e-6);
            if (!w.takes_floats()) CHECK(worst.quantization < (terms == 1 ? 1.0 : 1.0 / 254));
          }
        }
      }
    }
  }
}

TEST_CASE("float weights of any width have products that agree with float64") {
  for (const isa kind : available_isas()) {
    for (const element_type type : {element_type::f32, element_type::f16, element_type::bf16}) {
      for (const std::int64_t k : {1, 2, 7, 33}) {
        const random_matrix stored = make_random_matrix(type, 17, k, 4);
        const packed_weights w(stored.matrix, "w");
        const auto values = make_random_rows(5, w.columns(), 12);
        product p = multiply(w, values, 5, kernels_for(kind));
        CHECK(compare(p, w, stored, values, 5).arithmetic < 1e-6);
      }
    }
  }
}

TEST_CASE("each row has the same bits alone and in a batch of any size") {
  for (const isa kind : available_isas()) {
    const kernel_table& kernels = kernels_for(kind);
    for (const element_type type : packable_types()) {
      const random_matrix stored = make_random_matrix(type, 41, 512, 21);
      const packed_weights w(stored.matrix, "w");
      constexpr std::size_t rows_max = 33;
      const auto values = make_random_rows(rows_max, w.columns(), 22);
      for (const std::size_t terms : {1U, 2U}) {
        std::vector<float> alone;
        for (std::size_t m = 0; m < rows_max; ++m) {
          const std::vector<float> one(values.begin() + m * 512, values.begin() + (m + 1) * 512);
          const auto y = multiply(w, one, 1, kernels, 0, terms).y;
          alone.insert(alone.end(), y.begin(), y.end());
        }
        for (std::size_t rows = 1; rows <= rows_max; ++rows) {
          INFO(to_string(kind) << " " << model::info(type).name << " M=" << rows << " x" << terms);
          const auto y = multiply(w, values, rows, kernels, 0, terms).y;
          REQUIRE(std::memcmp(y.data(), alone.data(), y.size() * sizeof(float)) == 0);
        }
      }
    }
  }
}

TEST_CASE("the split into ranges of output rows does not change a bit") {
  for (const isa kind : available_isas()) {
    const kernel_table& kernels = kernels_for(kind);
    for (const element_type type : packable_types()) {
      const random_matrix stored = make_random_matrix(type, 50, 256, 31);
      const packed_weights w(stored.matrix, "w");
      const auto values = make_random_rows(70, w.columns(), 32);
      const auto whole = multiply(w, values, 70, kernels).y;
      for (const std::size_t range : {1U, 2U, 3U, 5U}) {
        INFO(to_string(kind) << " " << model::info(type).name << " by " << range);
        const auto y = multiply(w, values, 70, kernels, range).y;
        REQUIRE(std::memcmp(y.data(), whole.data(), y.size() * sizeof(float)) == 0);
      }
    }
  }
}

TEST_CASE("the largest codes do not overflow the integer sums") {
  for (const isa kind : available_isas()) {
    for (const element_type type : packable_types()) {
      for (const unsigned fill : {0x00U, 0xFFU, 0x80U, 0x7FU}) {
        random_matrix stored = make_random_matrix(type, 8, 256, 1);
        if (model::info(type).block_elements == 1) continue;
        const auto size = static_cast<std::size_t>(model::info(type).block_bytes);
        const std::uint16_t one = model::float_to_half(1.0F);
        for (std::size_t at = 0; at < stored.bytes.size(); at += size) {
          std::memset(stored.bytes.data() + at, static_cast<int>(fill), size);
          for (const std::size_t field : half_fields(type)) {
            std::memcpy(stored.bytes.data() + at + field, &one, 2);
          }
        }
        const packed_weights w(stored.matrix, "w");
        for (const float sign : {1.0F, -1.0F}) {
          INFO(to_string(kind) << " " << model::info(type).name << " " << fill << " " << sign);
          const std::vector<float> values(256, sign * 127.0F);
          product p = multiply(w, values, 1, kernels_for(kind));
          CHECK(compare(p, w, stored, values, 1).arithmetic < 1e-5);
        }
      }
    }
  }
}

TEST_CASE("a product computed by hand") {
  // One Q4_1 block, d = 0.5, m = -1: code 10 at input 0 (w = 4), code 9 at input
  // 16 (w = 3.5), 0 elsewhere (w = -1).
  random_matrix stored = make_random_matrix(element_type::q4_1, 1, 32, 1);
  std::fill(stored.bytes.begin(), stored.bytes.end(), std::byte{0});
  const std::uint16_t d = 0x3800;
  const std::uint16_t m = 0xBC00;
  std::memcpy(stored.bytes.data(), &d, 2);
  std::memcpy(stored.bytes.data() + 2, &m, 2);
  stored.bytes[4] = std::byte{0x9A};
  const packed_weights w(stored.matrix, "w");
  std::vector<float> x(32, 0.0F);
  x[0] = 127.0F;
  x[16] = 2.0F;
  x[31] = -10.0F;
  for (const isa kind : available_isas()) {
    // 4 x 127 + 3.5 x 2 - 1 x -10; the input scale is 1, so nothing is rounded.
    CHECK(multiply(w, x, 1, kernels_for(kind)).y[0] == 525.0F);
  }
}

TEST_CASE("an input that is not a number shows in its own row only") {
  const random_matrix stored = make_random_matrix(element_type::q4_k, 16, 256, 3);
  const packed_weights w(stored.matrix, "w");
  auto values = make_random_rows(3, 256, 12);
  const auto clean = multiply(w, values, 3, active_kernels()).y;
  values[256 + 100] = std::numeric_limits<float>::quiet_NaN();
  const auto y = multiply(w, values, 3, active_kernels()).y;
  for (std::size_t n = 0; n < 16; ++n) {
    CHECK(y[n] == clean[n]);
    CHECK(std::isnan(y[16 + n]));
    CHECK(y[32 + n] == clean[32 + n]);
  }
}
