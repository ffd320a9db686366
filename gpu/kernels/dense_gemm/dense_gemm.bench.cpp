// Products of 16-bit weights, by our own kernel and by the vendor's library.
#include "gpu/kernels/dense_gemm/dense_gemm.hpp"
#include "gpu/bench/gemm.hpp"
#include "gpu/kernels/dense_gemm/library_gemm.hpp"

namespace octavo::gpu {
namespace {

void measure_dense(bench_context& c, const weight_shape& w, int tokens, bool library) {
  const std::size_t elements = w.elements();
  const int turns = turns_for(c, 2 * elements);
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
  gemm_scratch s(c.on, dense_gemm_needs(p));
  p.workspace = s.view();
  bench_result r = gemm_result(library ? "dense_gemm (library)" : "dense_gemm", w, tokens,
                               2.0 * static_cast<double>(elements));
  r.microseconds = microseconds_of(c, turns, [&](int turn) {
    p.weights = weights.data() + elements * static_cast<std::size_t>(turn);
    dense_gemm(c.on, p);
  });
  c.results.push_back(std::move(r));
}

void bench(bench_context& c) {
  for_each_gemm(c, [&](const weight_shape& w, int tokens) {
    measure_dense(c, w, tokens, false);
    if (library_gemm_available()) measure_dense(c, w, tokens, true);
  });
}

const bench_registration registered("dense_gemm", bench);

}  // namespace
}  // namespace octavo::gpu
