// e4m3 products and the quantization of activations, against sums in double.
#include "gpu/kernels/fp8_gemm/fp8_gemm.hpp"

#include "core/error.hpp"
#include "gpu/kernels/dense_gemm/gemm_fixture.hpp"
#include "gpu/simt/schedules.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::gpu;

namespace {

std::vector<std::uint8_t> random_codes(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> codes(n);
  for (auto& code : codes) {
    code = static_cast<std::uint8_t>(random());
    if ((code & 0x7F) == 0x7F) code = 0;
  }
  return codes;
}

std::vector<float> random_scales(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> range(0.001F, 0.01F);
  std::vector<float> scales(n);
  for (auto& scale : scales) scale = range(random);
  return scales;
}

int blocks_of(int n) {
  return (n + fp8_block - 1) / fp8_block;
}

struct fp8_case {
  stream s;
  std::vector<std::uint8_t> activations;
  std::vector<std::uint8_t> weights;
  std::vector<float> activation_scales;
  std::vector<float> weight_scales;
  device_array<std::uint8_t> device_activations;
  device_array<std::uint8_t> device_weights;
  device_array<float> device_activation_scales;
  device_array<float> device_weight_scales;
  device_array<float> output;
  fp8_product product;

  fp8_case(fp8_weight_scales mode, int tokens, int outputs, int inputs)
      : activations(random_codes(static_cast<std::size_t>(tokens * inputs), 1)),
        weights(random_codes(static_cast<std::size_t>(outputs * inputs), 2)) {
    product.weight_mode = mode;
    product.activation_mode = mode == fp8_weight_scales::block ? fp8_activation_scales::token_block
                              : mode == fp8_weight_scales::channel ? fp8_activation_scales::token
                                                                   : fp8_activation_scales::fixed;
    const int activation_count = mode == fp8_weight_scales::block     ? tokens * blocks_of(inputs)
                                 : mode == fp8_weight_scales::channel ? tokens
                                                                      : 1;
    const int weight_count = mode == fp8_weight_scales::block
                                 ? blocks_of(outputs) * blocks_of(inputs)
                             : mode == fp8_weight_scales::channel ? outputs
                                                                  : 1;
    activation_scales = random_scales(static_cast<std::size_t>(activation_count), 3);
    weight_scales = random_scales(static_cast<std::size_t>(weight_count), 4);
    device_activations = on_device(s, activations);
    device_weights = on_device(s, weights);
    device_activation_scales = on_device(s, activation_scales);
    device_weight_scales = on_device(s, weight_scales);
    output = device_array<float>(static_cast<std::size_t>(tokens * outputs));
    product.activations = device_activations.data();
    product.activation_scales = device_activation_scales.data();
    product.weights = device_weights.data();
    product.weight_scales = device_weight_scales.data();
    product.output = output.data();
    product.output_type = dtype::float32;
    product.tokens = tokens;
    product.outputs = outputs;
    product.inputs = inputs;
    product.multiprocessors = 3;
    product.allow_library = false;
    s.synchronize();
  }

  std::vector<float> run() {
    test_workspace workspace(s, fp8_gemm_needs(product));
    product.workspace = workspace.view();
    fp8_gemm(s, product);
    std::vector<float> got(output.size());
    output.download(s, got);
    s.synchronize();
    return got;
  }

  double error(const std::vector<float>& got) const {
    const int inputs = product.inputs;
    expected_product e;
    e.tokens = product.tokens;
    e.outputs = product.outputs;
    e.inputs = inputs;
    e.activation = [&](int m, int k) {
      const int scale = product.weight_mode == fp8_weight_scales::block
                            ? m * blocks_of(inputs) + k / fp8_block
                        : product.weight_mode == fp8_weight_scales::channel ? m
                                                                            : 0;
      return double{model::e4m3_to_float(activations[static_cast<std::size_t>(m * inputs + k)])} *
             activation_scales[static_cast<std::size_t>(scale)];
    };
    e.weight = [&](int n, int k) {
      const int scale = product.weight_mode == fp8_weight_scales::block
                            ? n / fp8_block * blocks_of(inputs) + k / fp8_block
                        : product.weight_mode == fp8_weight_scales::channel ? n
                                                                            : 0;
      return double{model::e4m3_to_float(weights[static_cast<std::size_t>(n * inputs + k)])} *
             weight_scales[static_cast<std::size_t>(scale)];
    };
    return worst_error(e, got);
  }
};

constexpr fp8_weight_scales all_modes[] = {fp8_weight_scales::tensor, fp8_weight_scales::channel,
                                           fp8_weight_scales::block};

}  // namespace

TEST_CASE("e4m3 products agree with sums in double, odd shapes too") {
  for (const fp8_weight_scales mode : all_modes) {
    for (const int tokens : {1, 17, 66}) {
      INFO("mode " << static_cast<int>(mode) << ", " << tokens << " tokens");
      fp8_case small(mode, tokens, 77, 144);
      CHECK(small.error(small.run()) < float_sum_error);
      fp8_case large(mode, tokens, 260, 720);
      CHECK(large.error(large.run()) < float_sum_error);
    }
  }
}

TEST_CASE("e4m3 products are right under every schedule, with shared tiles") {
  simt::for_each_schedule([&](const char* schedule) {
    INFO(schedule);
    fp8_case c(fp8_weight_scales::block, 18, 200, 1040);
    CHECK(c.error(c.run()) < float_sum_error);
  });
}

TEST_CASE("e4m3 products in batch-invariant mode do not depend on company") {
  std::vector<float> alone;
  for (const int tokens : {1, 20, 70, 300}) {
    fp8_case c(fp8_weight_scales::tensor, tokens, 140, 1040);
    c.product.batch_invariant = true;
    std::vector<float> got = c.run();
    got.resize(140);
    if (alone.empty()) alone = got;
    REQUIRE(got == alone);
  }
}

TEST_CASE("activations become the nearest e4m3 numbers of their scale") {
  const int tokens = 3;
  const int inputs = 400;
  for (const dtype type : {dtype::float16, dtype::bfloat16}) {
    for (const auto mode : {fp8_activation_scales::token, fp8_activation_scales::token_block,
                            fp8_activation_scales::fixed}) {
      auto values = random_numbers(type, tokens * inputs, 9);
      // The second token is zero throughout.
      std::fill(values.begin() + inputs, values.begin() + 2 * inputs, 0);
      const int blocks = mode == fp8_activation_scales::token_block ? blocks_of(inputs) : 1;
      stream s;
      const auto device_values = on_device(s, values);
      device_array<std::uint8_t> codes(values.size());
      auto scales =
          on_device(s, std::vector<float>(static_cast<std::size_t>(tokens * blocks), 0.001F));
      fp8_quantize(s,
                   {device_values.data(), codes.data(), scales.data(), tokens, inputs, type, mode});
      std::vector<std::uint8_t> got(codes.size());
      std::vector<float> got_scales(scales.size());
      codes.download(s, got);
      scales.download(s, got_scales);
      s.synchronize();
      for (int m = 0; m < tokens; ++m) {
        for (int k = 0; k < inputs; ++k) {
          const int block = mode == fp8_activation_scales::token_block ? k / fp8_block : 0;
          const float scale = got_scales[static_cast<std::size_t>(
              mode == fp8_activation_scales::fixed ? 0 : m * blocks + block)];
          if (mode != fp8_activation_scales::fixed) {
            float largest = 0;
            const int last =
                mode == fp8_activation_scales::token ? inputs : std::min(inputs, (block + 1) * 128);
            for (int i = block * 128; i < last; ++i) {
              largest = std::max(
                  largest,
                  std::fabs(number_of(type, values[static_cast<std::size_t>(m * inputs + i)])));
            }
            REQUIRE(scale == (largest > 0 ? largest / 448.0F : 1.0F));
          }
          const float exact =
              number_of(type, values[static_cast<std::size_t>(m * inputs + k)]) / scale;
          const float code = model::e4m3_to_float(got[static_cast<std::size_t>(m * inputs + k)]);
          // Half a unit in the last place of 3 bits, or of subnormal numbers; saturated.
          const float wanted = std::clamp(exact, -448.0F, 448.0F);
          REQUIRE(std::fabs(code - wanted) <= std::max(std::fabs(wanted) / 16, 0x1p-10F));
        }
      }
    }
  }
}

// A launch's shape is checked when it is queued: running it would take the emulator long.
TEST_CASE("tokens are quantized that are more than a grid is high") {
  constexpr int tokens = 70'000;
  device_array<std::uint16_t> values(tokens * 16);
  device_array<std::uint8_t> codes(tokens * 16);
  device_array<float> scales(tokens);
  stream s;
  fp8_quantization work;
  work.values = values.data();
  work.codes = codes.data();
  work.scales = scales.data();
  work.tokens = tokens;
  work.inputs = 16;
  work.type = dtype::float16;
  for (const auto mode : {fp8_activation_scales::token, fp8_activation_scales::token_block}) {
    work.mode = mode;
    CHECK_NOTHROW(fp8_quantize(s, work));
  }
}

TEST_CASE("e4m3 products refuse what does not fit, by name") {
  fp8_case c(fp8_weight_scales::tensor, 2, 32, 64);
  SECTION("inputs") {
    c.product.inputs = 40;
  }
  SECTION("modes") {
    c.product.weight_mode = fp8_weight_scales::block;
  }
  SECTION("type") {
    c.product.type = dtype::float32;
  }
  CHECK_THROWS_AS(c.run(), input_error);
}
