// Slices of every stored form against the same rows and columns of the whole, bit
// by bit, for random contents; and cuts that cannot be.
#include "model/quantized/weight_slice.hpp"

#include "core/error.hpp"
#include "model/quantized/random_weights.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;
using Catch::Matchers::ContainsSubstring;

namespace {

void check_rows(const weight_matrix& whole, index_range range) {
  const weight_slice part = slice_rows(whole, range, "w");
  REQUIRE(rows_of(part.matrix) == range.size());
  REQUIRE(columns_of(part.matrix) == columns_of(whole));
  for (std::int64_t n = 0; n < range.size(); ++n) {
    CHECK(same_bits(row(part.matrix, n).data(), row(whole, range.begin + n).data(),
                    columns_of(whole)));
  }
}

void check_columns(const weight_matrix& whole, index_range range) {
  const weight_slice part = slice_columns(whole, range, "w");
  REQUIRE(rows_of(part.matrix) == rows_of(whole));
  REQUIRE(columns_of(part.matrix) == range.size());
  for (std::int64_t n = 0; n < rows_of(whole); ++n) {
    CHECK(same_bits(row(part.matrix, n).data(), row(whole, n).data() + range.begin, range.size()));
  }
}

/// All shares of 2 and 4 ranks, by rows and by columns.
void check_shares(const weight_matrix& whole) {
  for (const std::int64_t ranks : {1, 2, 4}) {
    const std::int64_t rows = rows_of(whole) / ranks;
    const std::int64_t columns = columns_of(whole) / ranks;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      CAPTURE(ranks, rank);
      check_rows(whole, {rank * rows, (rank + 1) * rows});
      check_columns(whole, {rank * columns, (rank + 1) * columns});
    }
  }
}

void refused(const weight_matrix& whole, index_range columns, const std::string& message) {
  CHECK_THROWS_AS(slice_columns(whole, columns, "blk.0.ffn_down"), infeasible_error);
  CHECK_THROWS_WITH(slice_columns(whole, columns, "blk.0.ffn_down"), ContainsSubstring(message));
}

}  // namespace

TEST_CASE("slices of plain numbers and GGUF blocks are those of the whole") {
  random_weights make(1);
  check_shares(make.blocks(element_type::f32, 12, 20));
  check_shares(make.blocks(element_type::bf16, 8, 12));
  for (const auto type : {element_type::q8_0, element_type::q4_0, element_type::q5_1}) {
    check_shares(make.blocks(type, 8, 128));
  }
  for (const auto type : {element_type::q4_k, element_type::q5_k, element_type::q6_k}) {
    check_shares(make.blocks(type, 4, 1024));
  }
  // Rows are views: nothing is copied.
  const auto whole = make.blocks(element_type::q8_0, 8, 128);
  CHECK(slice_rows(whole, {2, 4}, "w").copies.empty());
}

TEST_CASE("slices of AWQ, GPTQ and compressed-tensors weights are those of the whole") {
  random_weights make(2);
  for (const bool zeros : {true, false}) {
    check_shares(make.awq(32, 256, 64, zeros));
    check_shares(make.packed(32, 256, 4, 64, zeros, {}));
    check_shares(make.packed(16, 128, 8, 32, zeros, {}));
  }
  for (const int bits : {4, 8}) {
    check_shares(make.gptq(32, 256, bits, 64, {}));
    check_shares(make.gptq(32, 256, bits, 64, make.groups(256, 64, false)));
  }
  // One scale for all inputs.
  check_shares(make.awq(32, 96, 96, true));
  check_shares(make.packed(8, 96, 4, 96, false, {}));
}

TEST_CASE("slices of weights whose inputs have an order of their own are those of the whole") {
  random_weights make(3);
  check_shares(make.gptq(32, 256, 4, 64, make.groups(256, 64, true)));
  check_shares(make.gptq(16, 128, 8, 32, make.groups(128, 32, true)));
  check_shares(make.packed(32, 256, 4, 32, true, make.groups(256, 32, true)));
  refused(make.gptq(8, 96, 4, 8, make.groups(96, 8, true)), {0, 32},
          "32 inputs of a rank do not divide by the 12 groups");
}

TEST_CASE("slices of one-byte weights repeat the scales of blocks that they cut") {
  random_weights make(4);
  for (const auto type : {element_type::f8_e4m3, element_type::i8}) {
    check_shares(make.scaled(type, 8, 32, 8, 32));
    check_shares(make.scaled(type, 8, 32, 1, 32));
    check_shares(make.scaled(type, 12, 512, 8, 128));
  }
  // The last block is partial: 6 rows in blocks of 4, 168 columns in blocks of 64.
  const auto ragged = make.scaled(element_type::f8_e4m3, 6, 168, 4, 64);
  check_rows(ragged, {3, 6});
  check_columns(ragged, {0, 64});
  check_columns(ragged, {64, 168});
}

TEST_CASE("groups of 128 inputs may be cut into pieces of 32 and more") {
  // As 29,568 MLP columns, 231 groups, over two ranks: 115.5 groups each.
  random_weights make(5);
  for (const auto& whole : {make.awq(16, 384, 128, true), make.gptq(16, 384, 4, 128, {}),
                            make.packed(16, 384, 4, 128, true, {}),
                            make.scaled(element_type::f8_e4m3, 8, 384, 4, 128)}) {
    for (std::int64_t rank = 0; rank < 4; ++rank) check_columns(whole, {96 * rank, 96 * rank + 96});
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      check_columns(whole, {192 * rank, 192 * rank + 192});
    }
  }
}

TEST_CASE("cuts inside blocks, words and small groups are refused with the arithmetic") {
  random_weights make(6);
  refused(make.blocks(element_type::q4_k, 1, 768), {0, 384},
          "blk.0.ffn_down: a cut at input 384 would split a Q4_K block of 256 (384 = 1 x 256 + "
          "128); allowed sizes for 768 inputs: 1, 3");
  refused(make.awq(8, 384, 128, true), {0, 48},
          "a cut at input 48 would split a group of 128 into pieces of fewer than 32 (48 = 1 x 32 "
          "+ 16); allowed sizes for 384 inputs: 1, 2, 3, 4, 6, 12");
  refused(make.gptq(8, 96, 4, 96, {}), {12, 24}, "a cut at input 12 would split a word of 8 codes");
  const auto awq = make.awq(24, 32, 32, true);
  CHECK_THROWS_WITH(slice_rows(awq, {0, 12}, "w"),
                    ContainsSubstring("a cut at output 12 would split a word of 8 codes"));
  CHECK_THROWS_AS(slice_rows(make.gptq(24, 32, 8, 32, {}), {2, 8}, "w"), infeasible_error);
  CHECK_THROWS_AS(slice_rows(make.packed(24, 32, 4, 32, true, {}), {0, 4}, "w"), infeasible_error);
  CHECK_NOTHROW(slice_rows(make.packed(24, 32, 4, 32, false, {}), {0, 4}, "w"));
}
