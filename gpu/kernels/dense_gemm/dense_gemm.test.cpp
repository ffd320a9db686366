// Dense products of our own kernel against sums in double.
#include "gpu/kernels/dense_gemm/dense_gemm.hpp"

#include "core/error.hpp"
#include "gpu/kernels/dense_gemm/gemm_fixture.hpp"
#include "gpu/kernels/dense_gemm/tile_plan.hpp"
#include "gpu/simt/schedules.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::gpu;

namespace {

struct dense_case {
  stream s;
  std::vector<std::uint16_t> activations;
  std::vector<std::uint16_t> weights;
  std::vector<std::uint16_t> bias;
  device_array<std::uint16_t> device_activations;
  device_array<std::uint16_t> device_weights;
  device_array<std::uint16_t> device_bias;
  device_array<float> output;
  dense_product product;

  dense_case(dtype type, int tokens, int outputs, int inputs)
      : activations(random_numbers(type, static_cast<std::size_t>(tokens * inputs), 1)),
        weights(random_numbers(type, static_cast<std::size_t>(outputs * inputs), 2)),
        bias(random_numbers(type, static_cast<std::size_t>(outputs), 3)),
        device_activations(on_device(s, activations)),
        device_weights(on_device(s, weights)),
        device_bias(on_device(s, bias)),
        output(static_cast<std::size_t>(tokens * outputs)) {
    product.activations = device_activations.data();
    product.weights = device_weights.data();
    product.bias = device_bias.data();
    product.output = output.data();
    product.tokens = tokens;
    product.outputs = outputs;
    product.inputs = inputs;
    product.type = type;
    product.output_type = dtype::float32;
    product.multiprocessors = 3;
    product.allow_library = false;
    s.synchronize();
  }

  std::vector<float> run() {
    test_workspace workspace(s, dense_gemm_needs(product));
    product.workspace = workspace.view();
    dense_gemm(s, product);
    std::vector<float> got(output.size());
    output.download(s, got);
    s.synchronize();
    return got;
  }

  double error(const std::vector<float>& got) const {
    const auto number = [&](const auto& from, int i) {
      return double{number_of(product.type, from[static_cast<std::size_t>(i)])};
    };
    expected_product e;
    e.tokens = product.tokens;
    e.outputs = product.outputs;
    e.inputs = product.inputs;
    e.activation = [&](int m, int k) { return number(activations, m * product.inputs + k); };
    e.weight = [&](int n, int k) { return number(weights, n * product.inputs + k); };
    e.bias = [&](int n) { return number(bias, n); };
    return worst_error(e, got);
  }
};

void check_case(dtype type, int tokens, int outputs, int inputs) {
  INFO(name_of(type) << ": " << tokens << " x " << outputs << " x " << inputs);
  dense_case c(type, tokens, outputs, inputs);
  CHECK(c.error(c.run()) < float_sum_error);
}

}  // namespace

TEST_CASE("dense products agree with sums in double, odd shapes too") {
  for (const dtype type : {dtype::float16, dtype::bfloat16}) {
    check_case(type, 1, 1, 8);
    check_case(type, 1, 130, 72);
    check_case(type, 16, 128, 64);
    check_case(type, 33, 77, 344);
    check_case(type, 65, 129, 200);
    check_case(type, 130, 300, 576);
  }
}

TEST_CASE("dense products leave what lies between their rows alone") {
  for (const int outputs : {128, 130, 77}) {
    for (const int stride : {outputs, outputs + 1, outputs + 6}) {
      CAPTURE(outputs, stride);
      dense_case c(dtype::float16, 70, outputs, 200);
      c.output = device_array<float>(static_cast<std::size_t>(70 * stride));
      c.output.upload(c.s, std::vector<float>(c.output.size(), -7.0F));
      c.product.output = c.output.data();
      c.product.output_stride = stride;
      const std::vector<float> got = c.run();
      std::vector<float> inside;
      for (int i = 0; i < 70 * stride; ++i) {
        if (i % stride < outputs) {
          inside.push_back(got[static_cast<std::size_t>(i)]);
        } else {
          REQUIRE(got[static_cast<std::size_t>(i)] == -7.0F);
        }
      }
      CHECK(c.error(inside) < float_sum_error);
    }
  }
}

TEST_CASE("dense products are right under every schedule, with shared tiles") {
  simt::for_each_schedule([&](const char* schedule) {
    INFO(schedule);
    check_case(dtype::bfloat16, 18, 140, 584);
  });
}

TEST_CASE("dense products in batch-invariant mode do not depend on company") {
  std::vector<float> alone;
  for (const int tokens : {1, 16, 17, 64, 300}) {
    INFO(tokens << " tokens");
    dense_case c(dtype::bfloat16, tokens, 140, 584);
    c.device_activations.upload(
        c.s, random_numbers(dtype::bfloat16, static_cast<std::size_t>(tokens * 584), 1));
    c.product.batch_invariant = true;
    std::vector<float> got = c.run();
    got.resize(140);
    if (alone.empty()) alone = got;
    REQUIRE(got == alone);
  }
}

TEST_CASE("dense products refuse what does not fit, by name") {
  dense_case c(dtype::float16, 2, 8, 16);
  SECTION("inputs") {
    c.product.inputs = 12;
  }
  SECTION("type") {
    c.product.type = dtype::float8_e4m3;
  }
  SECTION("output type") {
    c.product.output_type = dtype::bfloat16;
  }
  SECTION("tokens") {
    c.product.tokens = 0;
  }
  SECTION("output stride") {
    c.product.output_stride = 7;
  }
  CHECK_THROWS_AS(c.run(), input_error);
}

TEST_CASE("plans cover the work once and cut it evenly") {
  for (const int tokens : {1, 16, 17, 64, 65, 500}) {
    for (const int outputs : {1, 128, 129, 4096, 14784}) {
      for (const int inputs : {8, 128, 4096, 10944}) {
        for (const bool invariant : {false, true}) {
          const tile_plan plan = plan_tiles(tokens, outputs, inputs, 128, 132, invariant);
          const int units = plan.column_tiles * plan.stages;
          REQUIRE(plan.runs * plan.run_stages >= units);
          REQUIRE((plan.runs - 1) * plan.run_stages < units);
          REQUIRE(plan.row_tiles * plan.tile_rows >= tokens);
          const tile_plan one = plan_tiles(1, outputs, inputs, 128, 132, true);
          if (invariant) REQUIRE(plan.run_stages == one.run_stages);
        }
      }
    }
  }
}
