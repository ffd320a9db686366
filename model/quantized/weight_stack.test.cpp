// Stacks of every stored form against the rows of their parts, bit by bit, for random
// contents; and parts that do not fit.
#include "model/quantized/weight_stack.hpp"

#include "model/quantized/random_weights.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;

namespace {

void check_stack(const std::vector<weight_matrix>& parts) {
  const auto stacked = stack_rows(parts);
  REQUIRE(stacked.has_value());
  std::int64_t n = 0;
  for (const weight_matrix& part : parts) {
    for (std::int64_t i = 0; i < rows_of(part); ++i, ++n) {
      CAPTURE(n);
      REQUIRE(n < rows_of(stacked->matrix));
      CHECK(same_bits(row(stacked->matrix, n).data(), row(part, i).data(), columns_of(part)));
    }
  }
  CHECK(n == rows_of(stacked->matrix));
}

void check_refused(const weight_matrix& a, const weight_matrix& b) {
  CHECK_FALSE(stack_rows(std::vector{a, b}).has_value());
}

constexpr auto e4m3 = element_type::f8_e4m3;

}  // namespace

TEST_CASE("stacks of AWQ, GPTQ and compressed-tensors weights have the rows of their parts") {
  random_weights make(1);
  check_stack({make.awq(32, 128, 64, true), make.awq(8, 128, 64, true)});
  check_stack(
      {make.awq(16, 96, 96, false), make.awq(8, 96, 96, false), make.awq(8, 96, 96, false)});
  for (const int bits : {4, 8}) {
    check_stack({make.gptq(32, 128, bits, 64, {}), make.gptq(8, 128, bits, 64, {}),
                 make.gptq(16, 128, bits, 64, {})});
    check_stack(
        {make.packed(24, 128, bits, 32, true, {}), make.packed(5, 128, bits, 32, true, {})});
    check_stack({make.packed(3, 72, bits, 72, false, {}), make.packed(6, 72, bits, 72, false, {})});
  }
  const auto order = make.groups(128, 32, true);
  check_stack({make.gptq(32, 128, 4, 32, order), make.gptq(8, 128, 4, 32, order)});
  check_stack({make.packed(8, 128, 4, 32, true, order), make.packed(8, 128, 4, 32, true, order)});
}

TEST_CASE("stacks of one-byte weights have the rows of their parts") {
  random_weights make(2);
  for (const auto type : {e4m3, element_type::i8}) {
    // A scale a tensor, a row, and both; blocks, the last one partial.
    check_stack({make.scaled(type, 6, 32, 6, 32), make.scaled(type, 3, 32, 3, 32)});
    check_stack({make.scaled(type, 6, 32, 1, 32), make.scaled(type, 3, 32, 1, 32)});
    check_stack({make.scaled(type, 6, 32, 6, 32), make.scaled(type, 4, 32, 1, 64)});
    check_stack({make.scaled(type, 8, 72, 4, 32), make.scaled(type, 6, 72, 4, 32)});
  }
}

TEST_CASE("slices stack to what they were cut from") {
  random_weights make(3);
  for (const weight_matrix& whole :
       {make.awq(32, 128, 64, true), make.gptq(32, 128, 8, 64, make.groups(128, 64, true)),
        make.packed(32, 128, 4, 32, true, {}), make.scaled(e4m3, 32, 128, 32, 128)}) {
    const weight_slice upper = slice_rows(whole, {0, 8}, "w");
    const weight_slice lower = slice_rows(whole, {8, 32}, "w");
    const auto stacked = stack_rows(std::vector{upper.matrix, lower.matrix});
    REQUIRE(stacked.has_value());
    REQUIRE(rows_of(stacked->matrix) == 32);
    for (std::int64_t n = 0; n < 32; ++n) {
      CHECK(same_bits(row(stacked->matrix, n).data(), row(whole, n).data(), 128));
    }
  }
}

TEST_CASE("parts that differ in more than their rows do not stack") {
  random_weights make(4);
  check_refused(make.awq(8, 128, 64, true), make.awq(8, 128, 32, true));
  check_refused(make.awq(8, 128, 64, true), make.awq(8, 128, 64, false));
  check_refused(make.awq(8, 128, 64, true), make.awq(8, 192, 64, true));
  check_refused(make.awq(8, 128, 64, true), make.gptq(8, 128, 4, 64, {}));
  check_refused(make.gptq(8, 128, 4, 64, {}), make.gptq(8, 128, 8, 64, {}));
  check_refused(make.gptq(8, 128, 4, 32, make.groups(128, 32, true)),
                make.gptq(8, 128, 4, 32, make.groups(128, 32, true)));
  // The first part ends within a word of zero points.
  check_refused(make.packed(5, 128, 4, 32, true, {}), make.packed(8, 128, 4, 32, true, {}));
  check_refused(make.scaled(e4m3, 8, 32, 8, 32), make.scaled(element_type::i8, 8, 32, 8, 32));
  check_refused(make.scaled(e4m3, 6, 72, 4, 32), make.scaled(e4m3, 8, 72, 4, 32));
  check_refused(make.scaled(e4m3, 8, 72, 4, 32), make.scaled(e4m3, 8, 72, 8, 72));
  check_refused(make.blocks(element_type::bf16, 8, 32), make.blocks(element_type::bf16, 8, 32));
  weight_matrix version2 = make.gptq(8, 128, 4, 64, {});
  std::get<gptq_matrix>(version2).zero_offset = 0;
  check_refused(make.gptq(8, 128, 4, 64, {}), version2);
}
