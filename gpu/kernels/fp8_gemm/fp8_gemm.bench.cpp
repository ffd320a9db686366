// Products of e4m3 weights with e4m3 activations, scaled by channel and token, and what
// makes the latter.
#include "gpu/kernels/fp8_gemm/fp8_gemm.hpp"
#include "gpu/bench/gemm.hpp"
#include "gpu/kernels/dense_gemm/library_gemm.hpp"

namespace octavo::gpu {
namespace {

/// 8-bit operands go through the tensor cores of sm_89 and sm_90 twice as fast as 16-bit ones.
constexpr double rate = 2;

void measure_product(bench_context& c, const weight_shape& w, int tokens, bool library) {
  const int turns = turns_for(c, w.elements());
  const auto weights = random_bytes(c.on, w.elements() * static_cast<std::size_t>(turns));
  const auto x = random_bytes(c.on, static_cast<std::size_t>(tokens) * w.inputs);
  const auto x_scales = random_floats(c.on, static_cast<std::size_t>(tokens));
  const auto w_scales = random_floats(c.on, static_cast<std::size_t>(w.outputs));
  device_array<std::uint16_t> y(static_cast<std::size_t>(tokens) * w.outputs);
  fp8_product p;
  p.activations = x.data();
  p.activation_scales = x_scales.data();
  p.weights = weights.data();
  p.weight_scales = w_scales.data();
  p.weight_mode = fp8_weight_scales::channel;
  p.output = y.data();
  p.tokens = tokens;
  p.outputs = w.outputs;
  p.inputs = w.inputs;
  p.multiprocessors = c.device.multiprocessors;
  p.allow_library = library;
  gemm_scratch s(c.on, fp8_gemm_needs(p));
  p.workspace = s.view();
  bench_result r = gemm_result(library ? "fp8_gemm (library)" : "fp8_gemm", w, tokens,
                               static_cast<double>(w.elements()), 1);
  r.rate = rate;
  r.microseconds = microseconds_of(c, turns, [&](int turn) {
    p.weights = weights.data() + w.elements() * static_cast<std::size_t>(turn);
    fp8_gemm(c.on, p);
  });
  c.results.push_back(std::move(r));
}

void measure_quantization(bench_context& c, int rows, int width) {
  const std::size_t elements = static_cast<std::size_t>(rows) * static_cast<std::size_t>(width);
  const int turns = turns_for(c, 3 * elements);
  const auto values = random_operand(c.on, elements * turns, dtype::bfloat16);
  device_array<std::byte> codes(elements * static_cast<std::size_t>(turns));
  device_array<float> scales(static_cast<std::size_t>(rows));
  fp8_quantization work;
  work.scales = scales.data();
  work.tokens = rows;
  work.inputs = width;
  bench_result r{"fp8_quantize", {{"rows", rows}, {"width", width}}};
  r.bytes = 3.0 * static_cast<double>(elements) + 4.0 * rows;
  r.microseconds = microseconds_of(c, turns, [&](int turn) {
    work.values = values.data() + elements * static_cast<std::size_t>(turn);
    work.codes = codes.data() + elements * static_cast<std::size_t>(turn);
    fp8_quantize(c.on, work);
  });
  c.results.push_back(std::move(r));
}

void bench(bench_context& c) {
  // Others store e4m3 but do not multiply it.
  if (10 * c.device.compute_major + c.device.compute_minor < 89) return;
  for_each_gemm(c, [&](const weight_shape& w, int tokens) {
    measure_product(c, w, tokens, false);
    if (library_scales_rows()) measure_product(c, w, tokens, true);
  });
  const std::vector<int> rows{1, 64, 2048};
  for (const int count : c.either(rows, {3})) measure_quantization(c, count, c.either(4096, 64));
}

const bench_registration registered("fp8_gemm", bench);

}  // namespace
}  // namespace octavo::gpu
