// Checkpoints whose scales belong to groups of inputs, against the scalar reference.
#include "cpu/kernels/pack_grouped.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "core/error.hpp"
#include "cpu/kernels/matmul.hpp"
#include "cpu/kernels/test_matrices.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::cpu;

namespace {

constexpr std::int64_t rows = 24;
constexpr std::int64_t columns = 192;

/// Random storage for one matrix of any form.
struct storage {
  std::vector<std::byte> codes;
  std::vector<std::byte> zeros;
  std::vector<std::byte> scales;
  std::vector<std::int32_t> groups;
  std::mt19937 random{17};

  void fill(std::size_t code_bytes, std::size_t zero_bytes, std::size_t scale_count) {
    const auto bytes = [&](std::size_t n) {
      std::vector<std::byte> out(n);
      for (auto& b : out) b = static_cast<std::byte>(random());
      return out;
    };
    codes = bytes(code_bytes);
    zeros = bytes(zero_bytes);
    for (std::size_t i = 0; i < scale_count; ++i) {
      const auto half = model::float_to_half(0.01F + static_cast<float>(random() % 100) * 1e-3F);
      const auto* raw = reinterpret_cast<const std::byte*>(&half);
      scales.insert(scales.end(), raw, raw + 2);
    }
  }
  [[nodiscard]] model::scale_array scale_array() const {
    return {model::element_type::f16, scales};
  }
  /// Every input to a random group of the right size.
  [[nodiscard]] std::span<const std::byte> shuffled_groups(std::int64_t group) {
    groups.resize(columns);
    for (std::int64_t k = 0; k < columns; ++k) groups[k] = static_cast<std::int32_t>(k / group);
    std::shuffle(groups.begin(), groups.end(), random);
    return std::as_bytes(std::span(groups));
  }
};

model::weight_matrix make_awq(storage& s, std::int64_t group, bool zeros) {
  s.fill(columns * rows / 2, columns / group * rows / 2, columns / group * rows);
  return model::awq_matrix{
      rows,
      columns,
      group,
      s.codes,
      zeros ? std::span<const std::byte>(s.zeros) : std::span<const std::byte>(),
      s.scale_array()};
}

model::weight_matrix make_gptq(storage& s, int bits, std::int64_t group, bool reordered) {
  s.fill(columns * rows * bits / 8, columns / group * rows * bits / 8, columns / group * rows);
  model::gptq_matrix m{rows, columns, bits, group, 1, s.codes, s.zeros, s.scale_array(), {}};
  if (reordered) m.groups = s.shuffled_groups(group);
  return m;
}

model::weight_matrix make_packed(storage& s, int bits, std::int64_t group, bool zeros) {
  s.fill(rows * columns * bits / 8, rows * bits / 8 * (columns / group), rows * columns / group);
  model::packed_matrix m{rows, columns, bits, group, s.codes, {}, s.scale_array(), {}};
  if (zeros) m.zeros = s.zeros;
  return m;
}

model::weight_matrix make_bytes(storage& s, std::int64_t block_rows, std::int64_t block_columns) {
  s.fill(rows * columns, 0, (rows / block_rows) * (columns / block_columns));
  return model::scaled_matrix{rows,       columns,       model::element_type::i8, s.codes,
                              block_rows, block_columns, s.scale_array()};
}

void check_against_reference(const model::weight_matrix& matrix) {
  const packed_weights w(matrix, "w");
  std::vector<std::vector<float>> expected(rows, std::vector<float>(columns));
  std::vector<float> got(columns);
  for (std::int64_t n = 0; n < rows; ++n) {
    model::dequantize_row(matrix, n, expected[n]);
    w.read_row(static_cast<std::size_t>(n), got);
    REQUIRE(std::memcmp(got.data(), expected[n].data(), columns * sizeof(float)) == 0);
  }
  const auto values = make_random_rows(5, columns, 2);
  for (const isa kind : available_isas()) {
    const kernel_table& kernels = kernels_for(kind);
    quantized_rows x;
    x.resize(5, w.inputs());
    for (std::size_t m = 0; m < 5; ++m) {
      const float* row = values.data() + m * columns;
      if (w.input_order().empty()) {
        x.quantize(m, row, kernels);
      } else {
        x.quantize_ordered(m, row, w.input_order(), kernels);
      }
    }
    std::vector<float> y(5 * rows);
    matmul(w, x, 0, w.row_tiles(), y.data(), rows, kernels);
    for (std::size_t m = 0; m < 5; ++m) {
      for (std::int64_t n = 0; n < rows; ++n) {
        double sum = 0;
        double magnitude = 0;
        for (std::size_t i = 0; i < w.inputs(); ++i) {
          const std::int64_t k =
              w.input_order().empty() ? static_cast<std::int64_t>(i) : w.input_order()[i];
          if (k < 0) continue;
          const block_slot slot = x.slot(m, i / 32);
          const double term = double{expected[n][k]} * slot.codes[i % 32] * *slot.scale;
          sum += term;
          magnitude += std::fabs(term);
        }
        REQUIRE(std::fabs(y[m * rows + n] - sum) < 4e-6 * magnitude);
      }
    }
  }
}

model::weight_matrix make_fp8(storage& s, std::int64_t block_rows, std::int64_t block_columns) {
  s.fill(rows * columns, 0,
         ((rows + block_rows - 1) / block_rows) * ((columns + block_columns - 1) / block_columns));
  // No NaN.
  for (auto& code : s.codes) {
    if ((code & std::byte{0x7F}) == std::byte{0x7F}) code = std::byte{0x01};
  }
  return model::scaled_matrix{rows,           columns,    model::element_type::f8_e4m3,
                              s.codes,        block_rows, block_columns,
                              s.scale_array()};
}

void check_floats_against_reference(const model::weight_matrix& matrix) {
  const packed_weights w(matrix, "w");
  REQUIRE(w.takes_floats());
  std::vector<float> expected(columns);
  std::vector<float> got(columns);
  const auto values = make_random_rows(5, columns, 2);
  for (const isa kind : available_isas()) {
    std::vector<float> y(5 * rows);
    matmul(w, float_rows{values.data(), 5, columns}, 0, w.row_tiles(), y.data(), rows,
           kernels_for(kind));
    for (std::int64_t n = 0; n < rows; ++n) {
      model::dequantize_row(matrix, n, expected);
      w.read_row(static_cast<std::size_t>(n), got);
      REQUIRE(std::memcmp(got.data(), expected.data(), columns * sizeof(float)) == 0);
      for (std::size_t m = 0; m < 5; ++m) {
        double sum = 0;
        double magnitude = 0;
        for (std::int64_t k = 0; k < columns; ++k) {
          const double term = double{expected[k]} * values[m * columns + k];
          sum += term;
          magnitude += std::fabs(term);
        }
        REQUIRE(std::fabs(y[m * rows + n] - sum) < 1e-6 * magnitude);
      }
    }
  }
}

}  // namespace

TEST_CASE("8-bit floats agree with the scalar reference") {
  storage s;
  SECTION("one scale") {
    check_floats_against_reference(make_fp8(s, rows, columns));
  }
  SECTION("a scale a row") {
    check_floats_against_reference(make_fp8(s, 1, columns));
  }
  SECTION("blocks, partial ones too") {
    check_floats_against_reference(make_fp8(s, 16, 128));
  }
}

TEST_CASE("all 256 8-bit floats are exact in a product") {
  std::vector<std::byte> codes(256);
  for (int i = 0; i < 256; ++i) codes[i] = static_cast<std::byte>(i);
  const float one = 1.0F;
  const model::weight_matrix m =
      model::scaled_matrix{256,
                           1,
                           model::element_type::f8_e4m3,
                           codes,
                           256,
                           1,
                           {model::element_type::f32, std::as_bytes(std::span(&one, 1))}};
  const packed_weights w(m, "w");
  for (const isa kind : available_isas()) {
    std::vector<float> y(256);
    matmul(w, float_rows{&one, 1, 1}, 0, w.row_tiles(), y.data(), 256, kernels_for(kind));
    for (int i = 0; i < 256; ++i) {
      const float expected = model::e4m3_to_float(static_cast<std::uint8_t>(i));
      CHECK((std::isnan(expected) ? std::isnan(y[i]) : y[i] == expected));
    }
  }
}

TEST_CASE("scaled columns of odd runs are refused by number") {
  storage s;
  CHECK_THROWS_AS(packed_weights(make_fp8(s, 8, 63), "w"), input_error);
}

TEST_CASE("grouped checkpoints agree with the scalar reference") {
  storage s;
  SECTION("AWQ") {
    check_against_reference(make_awq(s, 64, true));
  }
  SECTION("AWQ without zero points") {
    check_against_reference(make_awq(s, 192, false));
  }
  SECTION("GPTQ, 4 bits") {
    check_against_reference(make_gptq(s, 4, 96, false));
  }
  SECTION("GPTQ, 8 bits") {
    check_against_reference(make_gptq(s, 8, 64, false));
  }
  SECTION("GPTQ, reordered") {
    check_against_reference(make_gptq(s, 4, 64, true));
  }
  SECTION("GPTQ, groups that fill no block") {
    check_against_reference(make_gptq(s, 4, 48, true));
  }
  SECTION("compressed-tensors, 4 bits") {
    check_against_reference(make_packed(s, 4, 32, false));
  }
  SECTION("compressed-tensors, zero points") {
    check_against_reference(make_packed(s, 8, 96, true));
  }
  SECTION("bytes with a scale a row") {
    check_against_reference(make_bytes(s, 1, 192));
  }
  SECTION("bytes with a scale a block") {
    check_against_reference(make_bytes(s, 8, 64));
  }
}

TEST_CASE("groups of 128 grow by four percent at most") {
  // Codes and half scales and zero points of a group against float scales.
  std::vector<std::byte> codes(64 * 1024 / 2);
  std::vector<std::byte> zeros(64 * 8 / 2);
  std::vector<std::byte> scales(64 * 8 * 2);
  const model::weight_matrix m =
      model::awq_matrix{64, 1024, 128, codes, zeros, {model::element_type::f16, scales}};
  const packed_weights w(m, "w");
  CHECK(static_cast<double>(w.bytes()) <
        1.04 * static_cast<double>(codes.size() + zeros.size() + scales.size()));
}

TEST_CASE("inputs of a reordered group stand together, each group filled up") {
  storage s;
  const grouping g = group_inputs(make_gptq(s, 4, 48, true));
  CHECK(g.groups == 4);
  CHECK(g.block_groups == std::vector<std::uint32_t>{0, 0, 1, 1, 2, 2, 3, 3});
  REQUIRE(g.order.size() == 8 * 32);
  for (std::size_t i = 0; i < g.order.size(); ++i) {
    const bool filling = i % 64 >= 48;
    CHECK((g.order[i] == -1) == filling);
    if (!filling) CHECK(s.groups[g.order[i]] == static_cast<std::int32_t>(i / 64));
  }
}
