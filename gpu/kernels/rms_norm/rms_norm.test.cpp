// RMS norm against float64: plain, with the residual, with a norm of the input, for
// rows chosen by id; and a barrier left out on purpose.
#include "gpu/kernels/rms_norm/rms_norm.hpp"

#include "core/error.hpp"
#include "gpu/kernels/common/test_rows.hpp"
#include "gpu/kernels/rms_norm/rms_norm_reference.hpp"
#include "gpu/simt/schedules.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::gpu;

namespace {

constexpr float epsilon = 1e-5F;

template <class T>
std::vector<double> doubles(const std::vector<T>& values, std::size_t first, std::size_t n) {
  std::vector<double> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<float>(values[first + i]);
  return out;
}

struct norm_case {
  int rows;
  int width;
  bool with_residual;
  bool with_input_weight;
};

template <class T, class W>
void check(const norm_case& c) {
  const std::size_t width = static_cast<std::size_t>(c.width);
  const std::size_t n = static_cast<std::size_t>(c.rows) * width;
  const auto input = random_rows<T>(n, 1);
  const auto residual = random_rows<float>(n, 2, 3);
  const auto weight = random_rows<W>(width, 3);
  const auto input_weight = random_rows<W>(width, 4);
  std::vector<double> sums;
  std::vector<double> expected;
  for (std::size_t row = 0; row < static_cast<std::size_t>(c.rows); ++row) {
    auto x = doubles(input, row * width, width);
    if (c.with_input_weight) {
      x = rms_norm_reference(x, doubles(input_weight, 0, width), epsilon);
    }
    for (std::size_t i = 0; c.with_residual && i < width; ++i) x[i] += residual[row * width + i];
    sums.insert(sums.end(), x.begin(), x.end());
    const auto out = rms_norm_reference(x, doubles(weight, 0, width), epsilon);
    expected.insert(expected.end(), out.begin(), out.end());
  }
  simt::for_each_schedule([&](const char* name) {
    INFO(name << ", " << c.rows << " x " << c.width);
    stream s;
    auto d_input = on_device(s, input);
    auto d_residual = on_device(s, residual);
    auto d_weight = on_device(s, weight);
    auto d_input_weight = on_device(s, input_weight);
    device_array<T> output(n);
    rms_norm_params p;
    p.type = dtype_of<T>;
    p.rows = c.rows;
    p.width = c.width;
    p.epsilon = epsilon;
    p.input = d_input.data();
    p.residual = c.with_residual ? d_residual.data() : nullptr;
    p.input_weight = c.with_input_weight ? d_input_weight.data() : nullptr;
    p.weight = d_weight.data();
    p.weight_type = dtype_of<W>;
    p.output = output.data();
    rms_norm(p, s);
    CHECK(worst_error(on_host(s, output), expected, 1e-3) < 1.01 * rounding_of<T>);
    if (c.with_residual) CHECK(worst_error(on_host(s, d_residual), sums, 1) < 1e-6);
  });
}

template <class T, class W>
void check_all() {
  for (const auto& [rows, width] : {std::pair{1, 1}, {1, 64}, {3, 77}, {2, 260}, {1, 4100}}) {
    check<T, W>({rows, width, false, false});
    check<T, W>({rows, width, true, false});
    check<T, W>({rows, width, true, true});
  }
}

}  // namespace

TEST_CASE("rms_norm agrees with float64 for all shapes and types") {
  check_all<__half, float>();
  check_all<__half, __half>();
  check_all<__nv_bfloat16, float>();
  check_all<__nv_bfloat16, __nv_bfloat16>();
}

TEST_CASE("rms_norm of chosen rows leaves the residual as it is and gives zeros for no row") {
  constexpr std::size_t width = 36;
  const auto input = random_rows<__half>(4 * width, 1);
  const auto residual = random_rows<float>(4 * width, 2);
  const auto weight = random_rows<float>(width, 3);
  std::vector<double> expected;
  for (const std::size_t row : {2, 0, 2}) {
    auto x = doubles(input, row * width, width);
    for (std::size_t i = 0; i < width; ++i) x[i] += residual[row * width + i];
    const auto out = rms_norm_reference(x, doubles(weight, 0, width), epsilon);
    expected.insert(expected.end(), out.begin(), out.end());
  }
  expected.resize(4 * width);
  simt::for_each_schedule([&](const char* name) {
    INFO(name);
    stream s;
    auto d_input = on_device(s, input);
    auto d_residual = on_device(s, residual);
    auto d_weight = on_device(s, weight);
    auto ids = on_device(s, std::vector<int>{2, 0, 2, -1});
    device_array<__half> output(4 * width);
    rms_norm_params p;
    p.type = dtype::float16;
    p.rows = 4;
    p.width = width;
    p.epsilon = epsilon;
    p.input = d_input.data();
    p.residual = d_residual.data();
    p.weight = d_weight.data();
    p.row_ids = ids.data();
    p.output = output.data();
    rms_norm(p, s);
    CHECK(worst_error(on_host(s, output), expected, 1e-3) < 1.01 * rounding_of<__half>);
    CHECK(on_host(s, d_residual) == residual);
  });
}

TEST_CASE("rms_norm without an input norms the residual; without an output it only adds") {
  const auto residual = random_rows<float>(2 * 8, 2);
  const auto input = random_rows<__half>(2 * 8, 3);
  stream s;
  auto d_residual = on_device(s, residual);
  auto d_input = on_device(s, input);
  auto d_weight = on_device(s, std::vector<float>(8, 1));
  device_array<__half> output(2 * 8);
  rms_norm_params p;
  p.type = dtype::float16;
  p.rows = 2;
  p.width = 8;
  p.residual = d_residual.data();
  p.weight = d_weight.data();
  p.output = output.data();
  rms_norm(p, s);
  CHECK(on_host(s, d_residual) == residual);
  p.input = d_input.data();
  p.output = nullptr;
  p.weight = nullptr;
  rms_norm(p, s);
  const auto sums = on_host(s, d_residual);
  const auto normed = on_host(s, output);
  double squares = 0;
  for (int i = 0; i < 8; ++i) squares += static_cast<double>(residual[i]) * residual[i] / 8;
  for (int i = 0; i < 8; ++i) {
    CHECK(static_cast<float>(normed[i]) ==
          Catch::Approx(residual[i] / std::sqrt(squares)).epsilon(1e-3));
    CHECK(sums[i] == residual[i] + static_cast<float>(input[i]));
  }
}

TEST_CASE("rms_norm refuses what it cannot do, naming the field") {
  stream s;
  rms_norm_params p;
  p.rows = 1;
  p.width = norm_width_max + 1;
  CHECK_THROWS_WITH(rms_norm(p, s), "rms_norm: width is 24577; allowed are 1 to 24576");
  p.width = 8;
  CHECK_THROWS_AS(rms_norm(p, s), input_error);
  p.type = dtype::float32;
  float x = 0;
  p.input = p.output = &x;
  p.weight = &x;
  CHECK_THROWS_WITH(rms_norm(p, s), "rms_norm: type is float32; allowed are float16 and bfloat16");
}
