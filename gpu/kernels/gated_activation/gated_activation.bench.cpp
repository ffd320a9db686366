// The activation between the products of an 8B model's MLP.
#include "gpu/kernels/gated_activation/gated_activation.hpp"
#include "gpu/bench/bench.hpp"

namespace octavo::gpu {
namespace {

void measure(bench_context& c, int rows, int width) {
  const std::size_t elements = static_cast<std::size_t>(rows) * static_cast<std::size_t>(width);
  const int turns = turns_for(c, 6 * elements);
  auto gate = random_operand(c.on, elements * turns, dtype::bfloat16);
  const auto up = random_operand(c.on, elements * turns, dtype::bfloat16);
  gated_activation_params p;
  p.rows = rows;
  p.width = p.stride = width;
  bench_result r{"gated_activation", {{"rows", rows}, {"width", width}}};
  r.bytes = 6.0 * static_cast<double>(elements);
  r.microseconds = microseconds_of(c, turns, [&](int turn) {
    const std::size_t at = elements * static_cast<std::size_t>(turn);
    p.gate = gate.data() + at;
    p.up = up.data() + at;
    p.output = gate.data() + at;
    gated_activation(p, c.on);
  });
  c.results.push_back(std::move(r));
}

void bench(bench_context& c) {
  const std::vector<int> rows{1, 64, 2048};
  for (const int count : c.either(rows, {3})) measure(c, count, c.either(14'336, 64));
}

const bench_registration registered("gated_activation", bench);

}  // namespace
}  // namespace octavo::gpu
