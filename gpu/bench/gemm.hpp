// What the benches of matrix products share: shapes of an 8B model's layers, scratch, and
// the least work of a product.
#pragma once

#include <vector>

#include "gpu/bench/bench.hpp"
#include "gpu/kernels/dense_gemm/gemm_workspace.hpp"

namespace octavo::gpu {

struct weight_shape {
  int outputs, inputs;

  [[nodiscard]] std::size_t elements() const {
    return static_cast<std::size_t>(outputs) * static_cast<std::size_t>(inputs);
  }
};

/// Calls measure(weight, tokens) for each shape and number of tokens.
template <class Measure>
void for_each_gemm(const bench_context& c, Measure&& measure,
                   const std::vector<int>& tokens = {1, 8, 16, 32, 64, 256, 2048}) {
  const std::vector<weight_shape> full{{4096, 4096}, {12288, 4096}, {4096, 12288}};
  for (const weight_shape& w : c.either(full, {{128, 256}})) {
    for (const int count : c.either(tokens, {1, 16})) measure(w, count);
  }
}

/// Scratch and counters of a product.
struct gemm_scratch {
  device_array<std::byte> data;
  device_array<int> counters;

  gemm_scratch(stream& on, const gemm_needs& needs)
      : data(needs.bytes), counters(static_cast<std::size_t>(needs.counters)) {
    if (counters.size() > 0) counters.fill_zero(on);
  }
  [[nodiscard]] gemm_workspace view() {
    return {data.data(), data.size(), counters.data(), static_cast<int>(counters.size())};
  }
};

/// A result without its time: activations of `activation_bytes` each are read, those that are
/// written have 16 bits.
inline bench_result gemm_result(const char* kernel, const weight_shape& w, int tokens,
                                double weight_bytes, double activation_bytes = 2) {
  bench_result r{kernel, {{"m", tokens}, {"n", w.outputs}, {"k", w.inputs}}};
  r.flops = 2.0 * tokens * w.outputs * w.inputs;
  r.bytes = weight_bytes + tokens * (2.0 * w.outputs + activation_bytes * w.inputs);
  return r;
}

}  // namespace octavo::gpu
