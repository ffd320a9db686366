// Matrix products: 16-bit and e4m3 weights by the library and by our own kernels, and 4-bit
// ones in tiles and written out.
#include <algorithm>

#include "gpu/bench/bench.hpp"
#include "gpu/kernels/dense_gemm/dense_gemm.hpp"
#include "gpu/kernels/dense_gemm/library_gemm.hpp"
#include "gpu/kernels/fp8_gemm/fp8_gemm.hpp"
#include "gpu/kernels/w4a16/lane_layout.hpp"
#include "gpu/kernels/w4a16/w4a16.hpp"

namespace octavo::gpu {
namespace {

struct weight_shape {
  int outputs, inputs;
};

constexpr weight_shape weight_shapes[] = {{4096, 4096}, {12288, 4096}, {4096, 12288}};
constexpr int token_counts[] = {1, 8, 16, 32, 64, 256, 2048};
/// Around lane_dense_tokens_min, where both paths are measured.
constexpr int dense_token_counts[] = {128, 256, 512, 1024, 2048};

/// Scratch and counters of a product.
struct scratch {
  device_array<std::byte> data;
  device_array<int> counters;

  scratch(stream& on, const gemm_needs& needs)
      : data(needs.bytes), counters(static_cast<std::size_t>(needs.counters)) {
    if (counters.size() > 0) counters.fill_zero(on);
  }
  gemm_workspace view() {
    return {data.data(), data.size(), counters.data(), static_cast<int>(counters.size())};
  }
};

bench_result result_of(const char* kernel, const weight_shape& w, int tokens, double weight_bytes) {
  bench_result r{kernel, {{"m", tokens}, {"n", w.outputs}, {"k", w.inputs}}};
  r.flops = 2.0 * tokens * w.outputs * w.inputs;
  r.bytes = weight_bytes + 2.0 * tokens * (w.outputs + w.inputs);
  return r;
}

void measure_dense(bench_context& c, const weight_shape& w, int tokens, bool library) {
  const std::size_t elements = static_cast<std::size_t>(w.outputs) * w.inputs;
  const int turns = turns_for(2 * elements);
  const auto weights = random_operand(c.on, elements * turns, dtype::bfloat16);
  const auto x = random_operand(c.on, static_cast<std::size_t>(tokens) * w.inputs, dtype::bfloat16);
  device_array<std::uint16_t> y(static_cast<std::size_t>(tokens) * w.outputs);
  dense_product p;
  p.activations = x.data();
  p.weights = weights.data();
  p.output = y.data();
  p.tokens = tokens;
  p.outputs = w.outputs;
  p.inputs = w.inputs;
  p.multiprocessors = c.device.multiprocessors;
  p.allow_library = library;
  scratch s(c.on, dense_gemm_needs(p));
  p.workspace = s.view();
  bench_result r = result_of(library ? "dense_gemm (library)" : "dense_gemm", w, tokens,
                             2.0 * static_cast<double>(elements));
  r.microseconds = microseconds_of(c.on, turns, [&](int turn) {
    p.weights = weights.data() + elements * static_cast<std::size_t>(turn);
    dense_gemm(c.on, p);
  });
  c.results.push_back(std::move(r));
}

void measure_fp8(bench_context& c, const weight_shape& w, int tokens, bool library) {
  const std::size_t elements = static_cast<std::size_t>(w.outputs) * w.inputs;
  const int turns = turns_for(elements);
  const auto weights = random_bytes(c.on, elements * turns);
  const auto x = random_bytes(c.on, static_cast<std::size_t>(tokens) * w.inputs);
  device_array<float> scales(static_cast<std::size_t>(std::max(w.outputs, tokens)));
  // 0.0115 each.
  fill_bytes(c.on, scales.data(), 0x3c, scales.bytes());
  device_array<std::uint16_t> y(static_cast<std::size_t>(tokens) * w.outputs);
  fp8_product p;
  p.activations = x.data();
  p.activation_scales = p.weight_scales = scales.data();
  p.weight_mode = fp8_weight_scales::channel;
  p.weights = weights.data();
  p.output = y.data();
  p.tokens = tokens;
  p.outputs = w.outputs;
  p.inputs = w.inputs;
  p.multiprocessors = c.device.multiprocessors;
  p.allow_library = library;
  scratch s(c.on, fp8_gemm_needs(p));
  p.workspace = s.view();
  bench_result r = result_of(library ? "fp8_gemm (library)" : "fp8_gemm", w, tokens,
                             static_cast<double>(elements));
  r.microseconds = microseconds_of(c.on, turns, [&](int turn) {
    p.weights = weights.data() + elements * static_cast<std::size_t>(turn);
    fp8_gemm(c.on, p);
  });
  c.results.push_back(std::move(r));
}

void measure_w4a16(bench_context& c, const weight_shape& w, int tokens, lane_path path) {
  constexpr int group = 128;
  const std::size_t code_bytes = static_cast<std::size_t>(w.outputs) * w.inputs / 2;
  const std::size_t scales = static_cast<std::size_t>(w.outputs) * (w.inputs / group);
  const int turns = turns_for(code_bytes);
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
  scratch s(c.on, w4a16_needs(p));
  p.workspace = s.view();
  bench_result r = result_of(path == lane_path::dense ? "w4a16 (written out)" : "w4a16", w, tokens,
                             static_cast<double>(code_bytes) + 3.0 * static_cast<double>(scales));
  r.microseconds = microseconds_of(c.on, turns, [&](int turn) {
    p.weights.codes = codes.data() + code_bytes * static_cast<std::size_t>(turn);
    w4a16(c.on, p);
  });
  c.results.push_back(std::move(r));
}

}  // namespace

void bench_dense_gemm(bench_context& c) {
  for (const weight_shape& w : weight_shapes) {
    for (const int tokens : token_counts) {
      measure_dense(c, w, tokens, false);
      if (library_gemm_available()) measure_dense(c, w, tokens, true);
    }
  }
}

void bench_w4a16(bench_context& c) {
  for (const weight_shape& w : weight_shapes) {
    for (const int tokens : token_counts) {
      if (tokens < dense_token_counts[0]) measure_w4a16(c, w, tokens, lane_path::automatic);
    }
    for (const int tokens : dense_token_counts) {
      measure_w4a16(c, w, tokens, lane_path::tiles);
      measure_w4a16(c, w, tokens, lane_path::dense);
    }
  }
}

void bench_fp8_gemm(bench_context& c) {
  if (10 * c.device.compute_major + c.device.compute_minor < 89) return;
  for (const weight_shape& w : weight_shapes) {
    for (const int tokens : token_counts) {
      measure_fp8(c, w, tokens, false);
      if (library_scales_rows()) measure_fp8(c, w, tokens, true);
    }
  }
}

}  // namespace octavo::gpu
