// Products of 8-bit weights, stored as e4m3.
#include "gpu/kernels/w8a16/w8a16.hpp"
#include "gpu/bench/gemm.hpp"

namespace octavo::gpu {
namespace {

void measure(bench_context& c, const weight_shape& w, int tokens) {
  constexpr int group = 128;
  const std::size_t code_bytes = w.elements();
  const std::size_t scales = static_cast<std::size_t>(w.outputs) * (w.inputs / group);
  const int turns = turns_for(c, code_bytes);
  const auto codes = random_bytes(c.on, code_bytes * turns);
  const auto numbers = random_operand(c.on, scales, dtype::bfloat16);
  const auto x = random_operand(c.on, static_cast<std::size_t>(tokens) * w.inputs, dtype::bfloat16);
  device_array<std::uint16_t> y(static_cast<std::size_t>(tokens) * w.outputs);
  lane_product p;
  p.activations = x.data();
  p.weights.codes = codes.data();
  p.weights.scales = numbers.data();
  p.weights.outputs = w.outputs;
  p.weights.inputs = p.weights.source_inputs = w.inputs;
  p.weights.group = group;
  p.output = y.data();
  p.tokens = tokens;
  p.type = p.output_type = dtype::bfloat16;
  p.multiprocessors = c.device.multiprocessors;
  gemm_scratch s(c.on, w8a16_needs(p));
  p.workspace = s.view();
  bench_result r = gemm_result("w8a16", w, tokens,
                               static_cast<double>(code_bytes) + 2.0 * static_cast<double>(scales));
  r.microseconds = microseconds_of(c, turns, [&](int turn) {
    p.weights.codes = codes.data() + code_bytes * static_cast<std::size_t>(turn);
    w8a16(c.on, byte_code::e4m3, p);
  });
  c.results.push_back(std::move(r));
}

void bench(bench_context& c) {
  for_each_gemm(c, [&](const weight_shape& w, int tokens) { measure(c, w, tokens); });
}

const bench_registration registered("w8a16", bench);

}  // namespace
}  // namespace octavo::gpu
