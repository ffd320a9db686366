// Products of 4-bit weights: in tiles, and written out as 16-bit numbers first.
#include "gpu/kernels/w4a16/w4a16.hpp"
#include "gpu/bench/gemm.hpp"

namespace octavo::gpu {
namespace {

void measure(bench_context& c, const weight_shape& w, int tokens, lane_path path) {
  constexpr int group = 128;
  const std::size_t code_bytes = w.elements() / 2;
  const std::size_t scales = static_cast<std::size_t>(w.outputs) * (w.inputs / group);
  const int turns = turns_for(c, code_bytes);
  const auto codes = random_bytes(c.on, code_bytes * turns);
  const auto numbers = random_operand(c.on, scales, dtype::bfloat16);
  device_array<std::uint8_t> zeros(scales);
  fill_bytes(c.on, zeros.data(), 8, zeros.bytes());
  const auto x = random_operand(c.on, static_cast<std::size_t>(tokens) * w.inputs, dtype::bfloat16);
  device_array<std::uint16_t> y(static_cast<std::size_t>(tokens) * w.outputs);
  lane_product p;
  p.activations = x.data();
  p.weights.codes = codes.data();
  p.weights.scales = numbers.data();
  p.weights.zeros = zeros.data();
  p.weights.outputs = w.outputs;
  p.weights.inputs = p.weights.source_inputs = w.inputs;
  p.weights.group = group;
  p.output = y.data();
  p.tokens = tokens;
  p.type = p.output_type = dtype::bfloat16;
  p.path = path;
  p.multiprocessors = c.device.multiprocessors;
  gemm_scratch s(c.on, w4a16_needs(p));
  p.workspace = s.view();
  bench_result r =
      gemm_result(path == lane_path::dense ? "w4a16 (written out)" : "w4a16", w, tokens,
                  static_cast<double>(code_bytes) + 3.0 * static_cast<double>(scales));
  r.microseconds = microseconds_of(c, turns, [&](int turn) {
    p.weights.codes = codes.data() + code_bytes * static_cast<std::size_t>(turn);
    w4a16(c.on, p);
  });
  c.results.push_back(std::move(r));
}

void bench(bench_context& c) {
  for_each_gemm(c,
                [&](const weight_shape& w, int tokens) { measure(c, w, tokens, lane_path::tiles); },
                {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048});
  // Around lane_dense_tokens_min, from which on it is the way.
  for_each_gemm(c,
                [&](const weight_shape& w, int tokens) { measure(c, w, tokens, lane_path::dense); },
                {128, 256, 512, 1024, 2048});
}

const bench_registration registered("w4a16", bench);

}  // namespace
}  // namespace octavo::gpu
