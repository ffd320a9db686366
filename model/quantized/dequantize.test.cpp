// Dequantization against blocks worked out by hand, and against values computed
// by the gguf Python package (bench/reference/make_quantized_fixtures.py).
#include "model/quantized/dequantize.hpp"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/error.hpp"
#include "model/quantized/fixture.hpp"
#include "model/quantized/scalar.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A block under construction: bytes set at offsets.
struct block {
  explicit block(element_type of)
      : type(of), bytes(static_cast<std::size_t>(info(of).block_bytes)) {}

  block& set(std::size_t at, std::initializer_list<int> values) {
    for (const int value : values) bytes[at++] = static_cast<std::byte>(value);
    return *this;
  }
  block& half(std::size_t at, std::uint16_t bits) { return set(at, {bits & 0xFF, bits >> 8}); }
  [[nodiscard]] std::vector<float> read() const {
    std::vector<float> out(static_cast<std::size_t>(info(type).block_elements));
    dequantize(type, bytes, out);
    return out;
  }

  element_type type;
  std::vector<std::byte> bytes;
};

// Scales 1 2 3 4 33 34 35 63 and minima 5 6 7 8 17 18 49 50, packed by hand.
constexpr std::initializer_list<int> packed_scales{0x81, 0x82, 0x83, 0xC4, 0x45, 0x46,
                                                   0xC7, 0xC8, 0x11, 0x22, 0x13, 0x2F};

}  // namespace

TEST_CASE("halves are what IEEE 754 says, both ways, for all bit patterns") {
  CHECK(half_to_float(0x3800) == 0.5F);
  CHECK(half_to_float(0xBC00) == -1.0F);
  CHECK(half_to_float(0x0001) == std::ldexp(1.0F, -24));
  CHECK(half_to_float(0x7BFF) == 65504.0F);
  CHECK(std::signbit(half_to_float(0x8000)));
  CHECK(std::isinf(half_to_float(0xFC00)));
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = half_to_float(half);
    if (std::isnan(value)) {
      CHECK((half & 0x7C00) == 0x7C00);
      CHECK(std::isnan(half_to_float(float_to_half(value))));
      continue;
    }
    // 1-5-10: sign, exponent and mantissa taken apart by arithmetic.
    const int exponent = half >> 10 & 31;
    const int mantissa = half & 1023;
    const double magnitude = exponent == 0    ? std::ldexp(mantissa, -24)
                             : exponent == 31 ? INFINITY
                                              : std::ldexp(1024 + mantissa, exponent - 25);
    if (value != ((half & 0x8000) != 0 ? -magnitude : magnitude)) FAIL("half " << bits);
    if (float_to_half(value) != half) FAIL("back from half " << bits);
  }
}

TEST_CASE("floats become halves by rounding to the nearest, ties to even") {
  CHECK(float_to_half(1.0F + 0x1p-11F) == 0x3C00);
  CHECK(float_to_half(1.0F + 3 * 0x1p-11F) == 0x3C02);
  CHECK(float_to_half(1.0F + 0x1.2p-11F) == 0x3C01);
  CHECK(float_to_half(65519.0F) == 0x7BFF);
  CHECK(float_to_half(65520.0F) == 0x7C00);
  CHECK(float_to_half(-1e30F) == 0xFC00);
  CHECK(float_to_half(0x1p-25F) == 0x0000);
  CHECK(float_to_half(0x1.8p-25F) == 0x0001);
  CHECK(float_to_half(0x1.ff8p-15F) == 0x03FF);
  CHECK(float_to_half(0x1.ffcp-15F) == 0x0400);
  CHECK(float_to_half(0x1.fffp-15F) == 0x0400);
}

TEST_CASE("bfloat16 is the upper half of a float, rounded to even") {
  CHECK(bfloat_to_float(0x3FC0) == 1.5F);
  CHECK(float_to_bfloat(1.0F + 0x1p-8F) == 0x3F80);
  CHECK(float_to_bfloat(1.0F + 3 * 0x1p-8F) == 0x3F82);
  CHECK(std::isnan(bfloat_to_float(float_to_bfloat(std::nanf("")))));
  CHECK(std::isinf(bfloat_to_float(float_to_bfloat(3.4e38F))));
}

TEST_CASE("8-bit floats follow the OCP definition") {
  CHECK(e4m3_to_float(0x7E) == 448);
  CHECK(e4m3_to_float(0x3C) == 1.5);
  CHECK(e4m3_to_float(0xC4) == -3);
  CHECK(e4m3_to_float(0x08) == 0x1p-6F);
  CHECK(e4m3_to_float(0x01) == 0x1p-9F);
  CHECK(std::isnan(e4m3_to_float(0x7F)));
  CHECK(std::isnan(e4m3_to_float(0xFF)));
  CHECK(e5m2_to_float(0x7B) == 57344);
  CHECK(std::isinf(e5m2_to_float(0x7C)));
}

TEST_CASE("blocks of 32 match values worked out by hand") {
  const auto q8 = block(element_type::q8_0).half(0, 0x2C00).set(2, {0xF0}).read();
  CHECK(q8[0] == -1.0F);
  CHECK(q8[1] == 0);
  const auto q40 = block(element_type::q4_0).half(0, 0x3800).set(2, {0x9A}).read();
  CHECK(q40[0] == 1.0F);
  CHECK(q40[16] == 0.5F);
  CHECK(q40[1] == -4.0F);
  const auto q41 = block(element_type::q4_1).half(0, 0x3800).half(2, 0xBC00).set(4, {0x9A}).read();
  CHECK(q41[0] == 4.0F);
  CHECK(q41[16] == 3.5F);
  CHECK(q41[15] == -1.0F);
  const auto q50 =
      block(element_type::q5_0).half(0, 0x3400).set(2, {1, 0, 1, 0}).set(6, {0x3C}).read();
  CHECK(q50[0] == 3.0F);
  CHECK(q50[16] == 0.75F);
  CHECK(q50[31] == -4.0F);
  const auto q51 = block(element_type::q5_1)
                       .half(0, 0x3400)
                       .half(2, 0x3800)
                       .set(4, {1, 0, 1, 0})
                       .set(8, {0x3C})
                       .read();
  CHECK(q51[0] == 7.5F);
  CHECK(q51[16] == 5.25F);
}

TEST_CASE("K blocks match values worked out by hand") {
  block q4(element_type::q4_k);
  q4.half(0, 0x2000).half(2, 0x1400).set(4, packed_scales).set(16, {0xA3}).set(16 + 69, {0x7F});
  const auto w4 = q4.read();
  CHECK(w4[0] == 0.0185546875F);
  CHECK(w4[32] == 0.150390625F);
  CHECK(w4[133] == 3.8505859375F);
  CHECK(w4[165] == 1.841796875F);
  block q5(element_type::q5_k);
  q5.half(0, 0x2000).half(2, 0x1400).set(4, packed_scales).set(48 + 69, {0x7F});
  q5.set(16 + 5, {0x30});
  const auto w5 = q5.read();
  CHECK(w5[133] == 7.9755859375F);
  CHECK(w5[165] == 6.091796875F);
  block q6(element_type::q6_k);
  q6.set(84, {0x5C}).set(116, {0xA1}).set(128 + 52, {0xD8}).half(208, 0x2000);
  q6.set(192 + 9, {-3}).set(192 + 11, {7}).set(192 + 13, {11}).set(192 + 15, {-128});
  const auto w6 = q6.read();
  CHECK(w6[148] == 0.46875F);
  CHECK(w6[180] == 0.0546875F);
  CHECK(w6[212] == -0.9453125F);
  CHECK(w6[244] == -26.0F);
}

TEST_CASE("every element of a 4-bit block has a place of its own") {
  // One code at a time is set; exactly one element may change, and each once.
  for (const auto& [type, at, count] : {std::tuple{element_type::q4_0, 2U, 16U},
                                        {element_type::q4_1, 4U, 16U},
                                        {element_type::q4_k, 16U, 128U}}) {
    block base(type);
    base.half(0, 0x3C00);
    if (type == element_type::q4_k) base.set(4, {1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1});
    const auto before = base.read();
    std::vector<int> changes(before.size());
    for (unsigned byte = 0; byte < count; ++byte) {
      for (const int bits : {0x01, 0x10}) {
        block changed = base;
        changed.set(at + byte, {bits});
        const auto after = changed.read();
        for (std::size_t e = 0; e < after.size(); ++e) {
          if (after[e] == before[e]) continue;
          CHECK(after[e] - before[e] == 1.0F);
          ++changes[e];
        }
      }
    }
    CHECK(changes == std::vector<int>(before.size(), 1));
  }
}

TEST_CASE("random blocks equal the gguf package's values bit for bit") {
  const nlohmann::json fixture = load_fixture("ggml_blocks.json");
  REQUIRE(fixture.at("cases").size() == 10);
  for (const auto& entry : fixture.at("cases")) {
    const std::string name = entry.at("type");
    INFO(name);
    const auto type = gguf_element_type(entry.at("number").get<std::uint32_t>());
    REQUIRE(type);
    CHECK(info(*type).name == name);
    CHECK(info(*type).block_bytes == entry.at("block_bytes").get<std::int64_t>());
    const auto bytes = hex_bytes(entry.at("bytes"));
    const auto expected = hex_floats(entry.at("values"));
    std::vector<float> values(expected.size());
    dequantize(*type, bytes, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      INFO("element " << i);
      CHECK(values[i] == expected[i]);
    }
  }
}

TEST_CASE("all 8-bit floats equal torch's conversion") {
  const nlohmann::json fixture = load_fixture("float8.json");
  for (const auto& [type, key] :
       {std::pair{element_type::f8_e4m3, "e4m3"}, std::pair{element_type::f8_e5m2, "e5m2"}}) {
    const auto expected = hex_floats(fixture.at(key));
    std::vector<std::byte> codes(256);
    for (std::size_t i = 0; i < 256; ++i) codes[i] = static_cast<std::byte>(i);
    std::vector<float> values(256);
    dequantize(type, codes, values);
    for (std::size_t i = 0; i < 256; ++i) {
      INFO(key << " code " << i);
      CHECK((values[i] == expected[i] || (std::isnan(values[i]) && std::isnan(expected[i]))));
    }
  }
}

TEST_CASE("sizes of all block types are those of the gguf package") {
  const nlohmann::json fixture = load_fixture("ggml_blocks.json");
  int compared = 0;
  for (const auto& entry : fixture.at("sizes")) {
    const auto type = gguf_element_type(entry.at("number").get<std::uint32_t>());
    if (!type) continue;
    INFO(entry.dump());
    CHECK(info(*type).name == entry.at("type").get<std::string>());
    CHECK(info(*type).block_elements == entry.at("elements").get<std::int64_t>());
    CHECK(info(*type).block_bytes == entry.at("bytes").get<std::int64_t>());
    ++compared;
  }
  CHECK(compared == 31);
}

TEST_CASE("a type that cannot be computed with is refused by name") {
  std::vector<float> out(256);
  const std::vector<std::byte> bytes(66);
  CHECK_FALSE(is_readable(element_type::iq2_xxs));
  CHECK_THROWS_AS(dequantize(element_type::iq2_xxs, bytes, out), input_error);
  CHECK_THROWS_WITH(dequantize(element_type::iq2_xxs, bytes, out), ContainsSubstring("IQ2_XXS"));
}
