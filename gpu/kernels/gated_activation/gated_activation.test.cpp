// Gated activations against float64.
#include "gpu/kernels/gated_activation/gated_activation.hpp"

#include "core/error.hpp"
#include "gpu/kernels/common/test_rows.hpp"
#include "gpu/kernels/gated_activation/gated_activation_reference.hpp"
#include "gpu/simt/schedules.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::gpu;

namespace {

template <class T>
void check(int rows, int width, bool fused, gate_function function) {
  const auto n = static_cast<std::size_t>(rows) * static_cast<std::size_t>(width);
  const auto both = random_rows<T>(2 * n, 1, 4);
  const int stride = fused ? 2 * width : width;
  const std::size_t up_at = fused ? static_cast<std::size_t>(width) : n;
  std::vector<double> expected(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t from = i / width * stride + i % width;
    const double gate = static_cast<float>(both[from]);
    const double up = static_cast<float>(both[from + up_at]);
    expected[i] =
        (function == gate_function::silu ? silu_reference(gate) : gelu_tanh_reference(gate)) * up;
  }
  simt::for_each_schedule([&](const char* name) {
    INFO(name << ", " << rows << " x " << width << (fused ? ", fused" : ""));
    stream s;
    auto d_both = on_device(s, both);
    device_array<T> output(n);
    gated_activation_params p;
    p.type = dtype_of<T>;
    p.function = function;
    p.rows = rows;
    p.width = width;
    p.gate = d_both.data();
    p.up = d_both.data() + up_at;
    p.stride = stride;
    p.output = output.data();
    gated_activation(p, s);
    // GELU of large negative gates is a small difference of large numbers.
    CHECK(worst_error(on_host(s, output), expected, 1e-2) < 1.05 * rounding_of<T>);
  });
}

}  // namespace

TEST_CASE("gated activations agree with float64") {
  for (const auto& [rows, width] : {std::pair{1, 1}, {3, 77}, {2, 344}, {1, 2056}}) {
    for (const bool fused : {true, false}) {
      for (const auto function : {gate_function::silu, gate_function::gelu_tanh}) {
        check<__half>(rows, width, fused, function);
        check<__nv_bfloat16>(rows, width, fused, function);
      }
    }
  }
}

TEST_CASE("gated activations of huge gates are the gate or zero") {
  const std::vector<__half> gate{__half(60000.0F), __half(-60000.0F), __half(0.0F)};
  stream s;
  auto d_gate = on_device(s, gate);
  auto d_up = on_device(s, std::vector<__half>(3, __half(1.0F)));
  device_array<__half> output(3);
  for (const auto function : {gate_function::silu, gate_function::gelu_tanh}) {
    gated_activation_params p;
    p.type = dtype::float16;
    p.function = function;
    p.rows = 1;
    p.width = p.stride = 3;
    p.gate = d_gate.data();
    p.up = d_up.data();
    p.output = output.data();
    gated_activation(p, s);
    const auto out = on_host(s, output);
    CHECK(static_cast<float>(out[0]) == static_cast<float>(gate[0]));
    CHECK(static_cast<float>(out[1]) == 0);
    CHECK(static_cast<float>(out[2]) == 0);
  }
}

TEST_CASE("gated activations refuse a stride below the width") {
  stream s;
  gated_activation_params p;
  p.rows = 1;
  p.width = 8;
  CHECK_THROWS_WITH(gated_activation(p, s),
                    "gated_activation: stride is 0; allowed are 8 to 2147483647");
}
