// 8-bit products against sums in double of what the stored forms dequantize to.
#include "gpu/kernels/w8a16/w8a16.hpp"

#include "core/error.hpp"
#include "gpu/kernels/w4a16/stored_samples.hpp"
#include "gpu/simt/schedules.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::gpu;
using model::element_type;

namespace {

byte_code code_of(const lane_case& c) {
  return c.weights.image.code == lane_code::e4m3 ? byte_code::e4m3 : byte_code::int8;
}

std::vector<float> run(lane_case& c) {
  return c.run(w8a16_needs, [&](stream& s, const lane_product& p) { w8a16(s, code_of(c), p); });
}

void check_case(const stored_sample& stored, dtype type, int tokens, lane_path path,
                int multiprocessors = 4) {
  INFO(name_of(type) << ", " << tokens << " tokens, path " << static_cast<int>(path));
  lane_case c(stored.matrix, type, tokens);
  c.product.path = path;
  c.product.multiprocessors = multiprocessors;
  CHECK(c.error(stored, run(c)) < float_sum_error);
}

}  // namespace

TEST_CASE("8-bit products of every stored form agree with its dequantized weights") {
  stored_sample stored(3);
  SECTION("GPTQ, first version") {
    stored.make_gptq(8, 76, 256, 128, 1, false);
  }
  SECTION("GPTQ, second version") {
    stored.make_gptq(8, 76, 320, 32, 0, false);
  }
  SECTION("GPTQ, an order of its own") {
    stored.make_gptq(8, 40, 384, 64, 1, true);
  }
  SECTION("GPTQ, one group") {
    stored.make_gptq(8, 8, 136, 136, 1, false);
  }
  SECTION("compressed-tensors") {
    stored.make_packed(8, 77, 200, 64, true);
  }
  SECTION("signed bytes, a scale a row") {
    stored.make_bytes(element_type::i8, 77, 208, 1, 208);
  }
  SECTION("8-bit floats, one scale") {
    stored.make_bytes(element_type::f8_e4m3, 77, 208, 77, 208);
  }
  SECTION("8-bit floats, a scale a row") {
    stored.make_bytes(element_type::f8_e4m3, 77, 208, 1, 208);
  }
  SECTION("8-bit floats, blocks, partial ones too") {
    stored.make_bytes(element_type::f8_e4m3, 150, 336, 128, 128);
  }
  for (const dtype type : {dtype::float16, dtype::bfloat16}) {
    check_case(stored, type, 1, lane_path::few_tokens);
    check_case(stored, type, 8, lane_path::few_tokens);
    check_case(stored, type, 5, lane_path::tiles);
    check_case(stored, type, 33, lane_path::tiles);
    check_case(stored, type, 33, lane_path::dense);
  }
}

TEST_CASE("all 8-bit floats are exact in a product") {
  for (const dtype type : {dtype::float16, dtype::bfloat16}) {
    stored_sample stored(4);
    stored.make_bytes(element_type::f8_e4m3, 256, 16, 256, 16);
    // Output n has code n at input 0 and zeros elsewhere; the scale is 1.
    std::fill(stored.codes.begin(), stored.codes.end(), std::byte{0});
    for (std::size_t n = 0; n < 256; ++n) stored.codes[n * 16] = static_cast<std::byte>(n);
    const std::uint16_t one = model::float_to_half(1.0F);
    std::memcpy(stored.scales.data(), &one, 2);
    lane_case c(stored.matrix, type, 1);
    std::fill(c.activations.begin(), c.activations.end(), bits_as_type(type, 1.0F));
    c.device_activations.upload(c.s, c.activations);
    const std::vector<float> got = run(c);
    for (std::size_t n = 0; n < 256; ++n) {
      if (n % 128 == 127) continue;
      REQUIRE(got[n] == model::e4m3_to_float(static_cast<std::uint8_t>(n)));
    }
  }
}

TEST_CASE("8-bit products are right under every schedule, with shared tiles") {
  stored_sample stored(5);
  stored.make_gptq(8, 136, 832, 64, 1, false);
  simt::for_each_schedule([&](const char* schedule) {
    INFO(schedule);
    check_case(stored, dtype::float16, 2, lane_path::few_tokens, 3);
    check_case(stored, dtype::bfloat16, 19, lane_path::tiles, 3);
    check_case(stored, dtype::bfloat16, 19, lane_path::dense, 3);
  });
}

TEST_CASE("8-bit products in batch-invariant mode do not depend on company") {
  stored_sample stored(8);
  stored.make_gptq(8, 136, 832, 64, 1, false);
  std::vector<float> alone;
  for (const int tokens : {1, 17, 70}) {
    lane_case c(stored.matrix, dtype::bfloat16, tokens);
    c.product.batch_invariant = true;
    c.product.multiprocessors = 3;
    std::vector<float> got = run(c);
    got.resize(136);
    if (alone.empty()) alone = got;
    REQUIRE(got == alone);
  }
}

TEST_CASE("8-bit weights written out are the dequantized weights, rounded") {
  for (const auto type : {element_type::i8, element_type::f8_e4m3}) {
    // Scales of blocks, and of rows.
    const bool blocks = GENERATE(true, false);
    stored_sample stored(10);
    stored.make_bytes(type, 72, 320, blocks ? 128 : 1, blocks ? 128 : 320);
    stream s;
    device_weights weights(s, stored.matrix, dtype::bfloat16);
    device_array<std::uint16_t> values(72 * 320);
    w8a16_dequantize(s, type == element_type::i8 ? byte_code::int8 : byte_code::e4m3,
                     weights.view(), dtype::bfloat16, values.data());
    std::vector<std::uint16_t> got(values.size());
    values.download(s, got);
    s.synchronize();
    const std::vector<float> all = stored.dequantized();
    for (std::size_t i = 0; i < got.size(); ++i) {
      REQUIRE(number_of(dtype::bfloat16, got[i]) == rounded(dtype::bfloat16, all[i]));
    }
  }
}

TEST_CASE("8-bit products refuse what does not fit, by name") {
  stored_sample stored(11);
  stored.make_gptq(8, 64, 256, 128, 1, false);
  lane_case c(stored.matrix, dtype::float16, 4);
  c.product.weights.group = 40;
  CHECK_THROWS_AS(run(c), input_error);
}
