// Repacking loses nothing, and refuses what has no kernel.
#include "cpu/kernels/packed_weights.hpp"

#include <cstring>

#include "core/error.hpp"
#include "cpu/kernels/test_matrices.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::cpu;
using model::element_type;

TEST_CASE("packed rows read back bit for bit as the scalar reference dequantizes them") {
  for (const element_type type : packable_types()) {
    for (const std::int64_t rows : {1, 8, 9, 19}) {
      INFO(model::info(type).name << ", " << rows << " rows");
      const random_matrix stored = make_random_matrix(type, rows, 512, 7);
      const packed_weights packed(stored.matrix, "w");
      std::vector<float> expected(512);
      std::vector<float> got(512);
      for (std::int64_t row = 0; row < rows; ++row) {
        model::dequantize_row(stored.matrix, row, expected);
        packed.read_row(static_cast<std::size_t>(row), got);
        REQUIRE(std::memcmp(expected.data(), got.data(), 512 * sizeof(float)) == 0);
      }
    }
  }
}

TEST_CASE("packing needs at most three percent more than the file") {
  for (const element_type type : packable_types()) {
    const random_matrix stored = make_random_matrix(type, 64, 1024, 7);
    const packed_weights packed(stored.matrix, "w");
    const double growth =
        static_cast<double>(packed.bytes()) / static_cast<double>(stored.bytes.size());
    INFO(model::info(type).name << " grows to " << growth);
    CHECK(growth < 1.03);
    CHECK(growth >= 1.0);
  }
}

TEST_CASE("packing by parts gives what packing at once gives") {
  const random_matrix stored = make_random_matrix(element_type::q4_k, 37, 256, 3);
  const packed_weights whole(stored.matrix, "w");
  packed_weights parts = packed_weights::make_room(stored.matrix, "w");
  for (const std::size_t tile : {4U, 2U, 0U, 1U, 3U}) parts.pack(stored.matrix, tile, 1);
  const weights_view a = whole.view();
  const weights_view b = parts.view();
  REQUIRE(std::memcmp(a.codes, b.codes, 5 * 8 * 128) == 0);
  REQUIRE(std::memcmp(a.scales, b.scales, 5 * 8 * 16) == 0);
  REQUIRE(std::memcmp(a.supers, b.supers, 5 * 32) == 0);
}

TEST_CASE("types without a kernel are refused by name") {
  const std::vector<std::byte> bytes(84);
  const model::weight_matrix q2 = model::block_matrix{1, 256, element_type::q2_k, std::span(bytes)};
  try {
    const packed_weights packed(q2, "blk.3.ffn_up.weight");
    FAIL("accepted Q2_K");
  } catch (const input_error& error) {
    CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring("blk.3.ffn_up.weight"));
    CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring("Q2_K"));
  }
}
