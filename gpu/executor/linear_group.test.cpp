// Groups of layers multiplied at once against the same layers one by one, and whether
// weights of each form are.
#include "gpu/executor/linear_group.hpp"

#include <algorithm>
#include <cmath>

#include "gpu/kernels/dense_gemm/gemm_fixture.hpp"
#include "model/quantized/random_weights.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::gpu;
using model::element_type;

namespace {

constexpr int inputs = 256;
constexpr int tokens_max = 20;

/// 8-bit floats that are numbers.
struct float_bytes {
  std::vector<std::byte> codes;
  std::vector<float> scales;

  model::weight_matrix matrix(std::int64_t rows, std::int64_t block_rows,
                              std::int64_t block_columns, unsigned seed) {
    std::mt19937 random(seed);
    codes.resize(static_cast<std::size_t>(rows * inputs));
    for (auto& code : codes) {
      code = static_cast<std::byte>(random() % 2 * 128 + random() % 127);
    }
    const std::int64_t down = (rows + block_rows - 1) / block_rows;
    const std::int64_t across = (inputs + block_columns - 1) / block_columns;
    scales.resize(static_cast<std::size_t>(down * across));
    for (float& scale : scales) scale = 0x1p-6F * static_cast<float>(1 + random() % 8);
    return model::scaled_matrix{rows,
                                inputs,
                                element_type::f8_e4m3,
                                codes,
                                block_rows,
                                block_columns,
                                {element_type::f32, std::as_bytes(std::span{scales})}};
  }
};

/// Small numbers, so that no sum passes what float16 holds.
std::vector<std::uint16_t> small_activations() {
  std::vector<std::uint16_t> x(tokens_max * inputs);
  std::mt19937 random(7);
  for (auto& bits : x) {
    bits = model::float_to_half(static_cast<float>(random() % 64) * 0x1p-10F - 0x1p-5F);
  }
  return x;
}

struct device {
  stream on;
  device_array<std::uint16_t> x = on_device(on, small_activations());
  device_array<std::byte> codes{tokens_max * inputs};
  device_array<float> scales{2 * tokens_max};

  template <class Layer>
  std::vector<std::uint16_t> multiply(const Layer& layer, int tokens) {
    product_context with;
    with.multiprocessors = 4;
    with.fp8_codes = codes.data();
    with.fp8_scales = scales.data();
    test_workspace workspace(on, layer.needs(with, tokens));
    with.workspace = workspace.view();
    const auto count = static_cast<std::size_t>(tokens) * static_cast<std::size_t>(layer.outputs());
    device_array<std::uint16_t> output(count);
    if constexpr (std::is_same_v<Layer, linear_group>) {
      layer.multiply(on, with, x.data(), tokens, output.data());
    } else {
      layer.multiply(on, with, x.data(), tokens, output.data(), with.type);
    }
    std::vector<std::uint16_t> got(count);
    output.download(on, got);
    on.synchronize();
    return got;
  }
};

/// Inputs are few enough that our kernels cut no sum: equal to the last bit. A library may
/// add in another order.
#if defined(OCTAVO_NATIVE_CUDA)
constexpr float tolerance = 0x1p-8F;
#else
constexpr float tolerance = 0;
#endif

bool close(std::uint16_t a, std::uint16_t b) {
  if (a == b) return true;
  const float x = model::half_to_float(a);
  const float y = model::half_to_float(b);
  return std::abs(x - y) <= tolerance * std::max(1.0F, std::abs(y));
}

void check_group(const std::vector<model::weight_matrix>& matrices, std::size_t products,
                 bool biased = false, bool fp8_products = false) {
  device d;
  const weight_options options{dtype::float16, fp8_products};
  std::vector<stored_linear> parts;
  for (const auto& matrix : matrices) parts.push_back({{matrix, {}}, {}});
  if (biased) {
    parts[1].bias.resize(static_cast<std::size_t>(model::rows_of(matrices[1])));
    for (std::size_t n = 0; n < parts[1].bias.size(); ++n) {
      parts[1].bias[n] = static_cast<float>(n);
    }
  }
  const linear_group group{parts, options, "blk.0", d.on, run_serially};
  REQUIRE(group.products() == products);
  for (const int tokens : {1, 5, tokens_max}) {
    const auto got = d.multiply(group, tokens);
    for (std::size_t p = 0; p < parts.size(); ++p) {
      CAPTURE(tokens, p);
      const device_linear one{matrices[p], parts[p].bias, options, "w", d.on, run_serially};
      const auto wanted = d.multiply(one, tokens);
      REQUIRE(group.outputs(p) == one.outputs());
      const linear_group::place place = group.place_of(p, tokens);
      const auto width = static_cast<std::size_t>(one.outputs());
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        const std::size_t row = i / width;
        const std::size_t at = place.first + row * static_cast<std::size_t>(place.stride);
        REQUIRE(close(got[at + i % width], wanted[i]));
      }
    }
  }
}

}  // namespace

TEST_CASE("plain numbers and GGUF blocks of any types are multiplied at once") {
  model::random_weights make(1);
  std::vector<float> numbers(56 * inputs);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 13) - 6;
  const auto bytes = std::as_bytes(std::span{numbers});
  const model::weight_matrix a =
      model::block_matrix{40, inputs, element_type::f32, bytes.first(40 * inputs * 4)};
  const model::weight_matrix b =
      model::block_matrix{16, inputs, element_type::f32, bytes.last(16 * inputs * 4)};
  check_group({a, b}, 1);
  check_group({a, b}, 1, true);
  std::vector<std::byte> blocks(8 * inputs / 32 * 34, std::byte{0x11});
  check_group({a, model::block_matrix{8, inputs, element_type::q8_0, blocks}}, 1);
}

TEST_CASE("integer weights of one form are multiplied at once") {
  model::random_weights make(2);
  const auto order = make.groups(inputs, 32, true);
  check_group({make.awq(136, inputs, 64, true), make.awq(32, inputs, 64, true),
               make.awq(32, inputs, 64, true)},
              1);
  check_group({make.gptq(72, inputs, 4, 32, order), make.gptq(16, inputs, 4, 32, order)}, 1, true);
  check_group({make.gptq(72, inputs, 8, 64, {}), make.gptq(16, inputs, 8, 64, {})}, 1);
  check_group({make.packed(24, inputs, 4, inputs, false, {}),
               make.packed(40, inputs, 4, inputs, false, {})},
              1);
}

TEST_CASE("weights of different forms or orders are multiplied one by one") {
  model::random_weights make(3);
  const auto awq = make.awq(40, inputs, 64, true);
  check_group({awq, make.gptq(16, inputs, 4, 64, {}), make.awq(8, inputs, 64, true)}, 3, true);
  check_group({make.gptq(72, inputs, 4, 32, make.groups(inputs, 32, true)),
               make.gptq(16, inputs, 4, 32, make.groups(inputs, 32, true))},
              2);
}

TEST_CASE("8-bit floats are multiplied at once with scales of tensors, rows and blocks") {
  const bool fp8_products = GENERATE(false, true);
  CAPTURE(fp8_products);
  float_bytes a;
  float_bytes b;
  const auto check = [&](const model::weight_matrix& x, const model::weight_matrix& y,
                         std::size_t products) {
    check_group({x, y}, products, true, fp8_products);
  };
  check(a.matrix(48, 48, inputs, 1), b.matrix(16, 16, inputs, 2), 1);
  check(a.matrix(48, 1, inputs, 3), b.matrix(16, 1, inputs, 4), 1);
  check(a.matrix(48, 1, inputs, 5), b.matrix(16, 16, inputs, 6), 1);
  check(a.matrix(256, 128, 128, 7), b.matrix(16, 128, 128, 8), 1);
}
