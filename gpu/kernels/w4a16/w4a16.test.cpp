// 4-bit products against sums in double of what the stored forms dequantize to.
#include "gpu/kernels/w4a16/w4a16.hpp"

#include "core/error.hpp"
#include "gpu/kernels/w4a16/stored_samples.hpp"
#include "gpu/simt/schedules.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::gpu;

namespace {

void check_case(const stored_sample& stored, dtype type, int tokens, lane_path path,
                int multiprocessors = 4) {
  INFO(name_of(type) << ", " << tokens << " tokens, path " << static_cast<int>(path));
  lane_case c(stored.matrix, type, tokens);
  c.product.path = path;
  c.product.multiprocessors = multiprocessors;
  CHECK(c.error(stored, c.run(w4a16_needs, w4a16)) < float_sum_error);
}

void check_paths(const stored_sample& stored) {
  for (const dtype type : {dtype::float16, dtype::bfloat16}) {
    check_case(stored, type, 1, lane_path::few_tokens);
    check_case(stored, type, 7, lane_path::few_tokens);
    check_case(stored, type, 5, lane_path::tiles);
    check_case(stored, type, 5, lane_path::dense);
  }
}

}  // namespace

TEST_CASE("4-bit products of every stored form agree with its dequantized weights") {
  stored_sample stored(3);
  SECTION("AWQ, groups of 128") {
    stored.make_awq(72, 384, 128);
  }
  SECTION("AWQ, groups of 64") {
    stored.make_awq(136, 704, 64);
  }
  SECTION("AWQ, groups of 32") {
    stored.make_awq(64, 416, 32);
  }
  SECTION("AWQ, one group") {
    stored.make_awq(64, 320, 320);
  }
  SECTION("GPTQ, first version") {
    stored.make_gptq(4, 80, 256, 128, 1, false);
  }
  SECTION("GPTQ, second version") {
    stored.make_gptq(4, 80, 256, 64, 0, false);
  }
  SECTION("GPTQ, an order of its own") {
    stored.make_gptq(4, 72, 384, 128, 1, true);
  }
  SECTION("GPTQ, an order of its own and small groups") {
    stored.make_gptq(4, 72, 96, 16, 1, true);
  }
  SECTION("GPTQ, one group") {
    stored.make_gptq(4, 8, 136, 136, 1, false);
  }
  SECTION("compressed-tensors, symmetric") {
    stored.make_packed(4, 77, 256, 128, false);
  }
  SECTION("compressed-tensors, zero points") {
    stored.make_packed(4, 77, 256, 32, true);
  }
  check_paths(stored);
}

TEST_CASE("4-bit products are right for all tile heights and cuts of the work") {
  stored_sample stored(4);
  stored.make_awq(200, 1216, 64);
  for (const int multiprocessors : {1, 3, 7}) {
    check_case(stored, dtype::float16, 3, lane_path::few_tokens, multiprocessors);
    check_case(stored, dtype::float16, 3, lane_path::tiles, multiprocessors);
    check_case(stored, dtype::float16, 32, lane_path::tiles, multiprocessors);
    check_case(stored, dtype::bfloat16, 65, lane_path::tiles, multiprocessors);
  }
}

TEST_CASE("4-bit products are right where weights are written out in turns") {
  stored_sample stored(13);
  SECTION("the last turn is a part of a tile") {
    stored.make_packed(4, 301, 256, 64, true);
  }
  SECTION("an order of its own, filled up") {
    stored.make_gptq(4, 264, 96, 16, 1, true);
  }
  for (const dtype type : {dtype::float16, dtype::bfloat16}) {
    for (const std::size_t bytes :
         {std::size_t{1}, std::size_t{128 * 1024}, std::size_t{1} << 20}) {
      lane_case c(stored.matrix, type, 35);
      c.product.path = lane_path::dense;
      c.product.dense_bytes_max = bytes;
      CAPTURE(bytes);
      CHECK(c.error(stored, c.run(w4a16_needs, w4a16)) < float_sum_error);
    }
  }
}

TEST_CASE("the workspace serves the last turn too, which may share out its work otherwise") {
  stored_sample stored(15);
  stored.make_packed(4, 876, 576, 64, true);
  lane_case c(stored.matrix, dtype::bfloat16, 70);
  c.product.path = lane_path::dense;
  // Turns of four tiles, which four multiprocessors need not cut, and of three.
  c.product.multiprocessors = 4;
  c.product.dense_bytes_max = std::size_t{4} * 128 * 576 * 2;
  CHECK(c.error(stored, c.run(w4a16_needs, w4a16)) < float_sum_error);
}

TEST_CASE("4-bit weights are written out from a number of tokens on, but for batch invariance") {
  stored_sample stored(14);
  stored.make_awq(264, 512, 128);
  lane_case c(stored.matrix, dtype::float16, 20);
  const std::size_t tiles = w4a16_needs(c.product).bytes;
  c.product.dense_tokens_min = 20;
  const std::size_t dense = w4a16_needs(c.product).bytes;
  // 264 outputs are three tiles of 128.
  CHECK(dense >= 3 * 128 * 512 * 2);
  CHECK(tiles < 128 * 512 * 2);
  CHECK(c.error(stored, c.run(w4a16_needs, w4a16)) < float_sum_error);
  c.product.dense_bytes_max = 200'000;
  CHECK(w4a16_needs(c.product).bytes < dense - 128 * 512 * 2);
  c.product.batch_invariant = true;
  CHECK(w4a16_needs(c.product).bytes < 128 * 512 * 2);
}

TEST_CASE("4-bit products are right under every schedule") {
  stored_sample stored(5);
  stored.make_awq(136, 1088, 64);
  simt::for_each_schedule([&](const char* schedule) {
    INFO(schedule);
    check_case(stored, dtype::float16, 2, lane_path::few_tokens, 3);
    check_case(stored, dtype::float16, 19, lane_path::tiles, 3);
    check_case(stored, dtype::float16, 19, lane_path::dense, 3);
  });
}

TEST_CASE("4-bit products of 16-bit output add the bias and round once") {
  stored_sample stored(6);
  stored.make_packed(4, 161, 256, 64, true);
#if defined(OCTAVO_NATIVE_CUDA)
  // The library may add in another order for another type of output.
  const lane_path path = lane_path::tiles;
#else
  const lane_path path = GENERATE(lane_path::tiles, lane_path::dense);
#endif
  for (const dtype type : {dtype::float16, dtype::bfloat16}) {
    lane_case c(stored.matrix, type, 9);
    c.product.path = path;
    c.product.dense_bytes_max = 1;
    const std::vector<float> sums = c.run(w4a16_needs, w4a16);
    const auto bias = random_numbers(type, 161, 8);
    const auto device_bias = on_device(c.s, bias);
    device_array<std::uint16_t> output(9 * 161);
    c.product.bias = device_bias.data();
    c.product.output = output.data();
    c.product.output_type = type;
    c.run(w4a16_needs, w4a16);
    std::vector<std::uint16_t> got(9 * 161);
    output.download(c.s, got);
    c.s.synchronize();
    for (std::size_t i = 0; i < got.size(); ++i) {
      REQUIRE(got[i] == bits_as_type(type, sums[i] + number_of(type, bias[i % 161])));
    }
  }
}

TEST_CASE("scales that the type cannot hold cost no more than their rounding") {
  stored_sample stored(7);
  stored.make_packed(4, 64, 512, 128, false);
  // fp16 scales with all 11 bits, for bf16 that keeps 8.
  for (std::size_t i = 0; i < stored.scales.size(); i += 2) stored.scales[i] = std::byte{0xAB};
  lane_case c(stored.matrix, dtype::bfloat16, 12);
  CHECK(c.error(stored, c.run(w4a16_needs, w4a16)) < 0x1p-8);
}

TEST_CASE("in batch-invariant mode a row does not depend on its company") {
  stored_sample stored(8);
  stored.make_gptq(4, 200, 1152, 128, 1, true);
  std::vector<float> alone;
  for (const int tokens : {1, 8, 17, 40, 70, 300}) {
    INFO(tokens << " tokens");
    lane_case c(stored.matrix, dtype::float16, tokens);
    c.product.batch_invariant = true;
    c.product.multiprocessors = 3;
    std::vector<float> got = c.run(w4a16_needs, w4a16);
    // The same numbers come first for any count of tokens.
    got.resize(200);
    if (alone.empty()) alone = got;
    REQUIRE(got == alone);
  }
}

TEST_CASE("one workspace serves products one after another, and stays zero") {
  stored_sample stored(9);
  stored.make_awq(136, 1024, 128);
  lane_case c(stored.matrix, dtype::float16, 6);
  c.product.multiprocessors = 3;
  gemm_needs needs;
  for (const lane_path path : {lane_path::tiles, lane_path::few_tokens}) {
    c.product.path = path;
    needs |= w4a16_needs(c.product);
  }
  REQUIRE(needs.counters > 0);
  test_workspace workspace(c.s, needs);
  c.product.workspace = workspace.view();
  for (const lane_path path : {lane_path::tiles, lane_path::few_tokens, lane_path::tiles}) {
    c.product.path = path;
    w4a16(c.s, c.product);
    std::vector<float> got(c.output.size());
    c.output.download(c.s, got);
    std::vector<int> counters(workspace.counters.size());
    workspace.counters.download(c.s, counters);
    c.s.synchronize();
    CHECK(c.error(stored, got) < float_sum_error);
    CHECK(counters == std::vector<int>(counters.size()));
  }
}

TEST_CASE("4-bit weights written out are the dequantized weights, rounded") {
  stored_sample stored(10);
  stored.make_gptq(4, 72, 96, 16, 1, true);
  for (const dtype type : {dtype::float16, dtype::bfloat16}) {
    stream s;
    device_weights weights(s, stored.matrix, type);
    const lane_image& image = weights.image;
    device_array<std::uint16_t> values(static_cast<std::size_t>(image.outputs * image.inputs));
    w4a16_dequantize(s, weights.view(), type, values.data());
    std::vector<std::uint16_t> got(values.size());
    values.download(s, got);
    s.synchronize();
    const std::vector<float> all = stored.dequantized();
    for (std::int64_t n = 0; n < image.outputs; ++n) {
      for (std::int64_t k = 0; k < image.inputs; ++k) {
        const std::int32_t source = image.order[static_cast<std::size_t>(k)];
        if (source < 0) continue;
        const auto bits = got[static_cast<std::size_t>(n * image.inputs + k)];
        REQUIRE(number_of(type, bits) ==
                rounded(type, all[static_cast<std::size_t>(n * 96 + source)]));
      }
    }
  }
}

// A launch's shape is checked when it is queued: running it would take the emulator long.
TEST_CASE("inputs are put in order of more tokens than a grid is high") {
  constexpr int tokens = 70'000;
  device_array<std::uint16_t> activations(tokens * 16);
  device_array<std::uint16_t> gathered(tokens * 16);
  device_array<std::int32_t> order(16);
  stream s;
  order.fill_zero(s);
  lane_weights weights;
  weights.order = order.data();
  weights.inputs = weights.source_inputs = 16;
  CHECK_NOTHROW(
      gather_inputs(s, weights, dtype::float16, activations.data(), tokens, gathered.data()));
}

TEST_CASE("4-bit products refuse what does not fit, by name") {
  stored_sample stored(11);
  stored.make_awq(64, 256, 128);
  lane_case c(stored.matrix, dtype::float16, 4);
  const auto refused = [&](const char* field) {
    try {
      c.run(w4a16_needs, w4a16);
      FAIL("accepted a wrong " << field);
    } catch (const input_error& error) {
      CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring(field));
    }
  };
  SECTION("tokens") {
    c.product.tokens = 0;
    refused("tokens");
  }
  SECTION("inputs") {
    c.product.weights.inputs = 252;
    refused("weights.inputs");
  }
  SECTION("group") {
    c.product.weights.group = 48;
    refused("weights.group");
  }
  SECTION("type") {
    c.product.type = dtype::float32;
    refused("type");
  }
  SECTION("codes") {
    c.product.weights.codes = nullptr;
    refused("weights.codes");
  }
  SECTION("path") {
    c.product.tokens = 9;
    c.product.path = lane_path::few_tokens;
    refused("few_tokens");
  }
  SECTION("batch invariance") {
    c.product.batch_invariant = true;
    c.product.path = lane_path::dense;
    refused("dense");
  }
  SECTION("workspace") {
    stored_sample wide(12);
    wide.make_awq(136, 1024, 128);
    lane_case split(wide.matrix, dtype::float16, 20);
    split.product.multiprocessors = 3;
    CHECK_THROWS_AS(w4a16(split.s, split.product), input_error);
  }
}
