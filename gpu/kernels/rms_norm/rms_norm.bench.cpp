// The norm between an 8B model's branches, with the sum into the residual stream.
#include "gpu/kernels/rms_norm/rms_norm.hpp"
#include "gpu/bench/bench.hpp"

namespace octavo::gpu {
namespace {

void measure(bench_context& c, int rows, int width) {
  const std::size_t elements = static_cast<std::size_t>(rows) * static_cast<std::size_t>(width);
  // 16 bits read and written, the residual's 32 both.
  const std::size_t bytes = elements * (2 + 2 + 4 + 4);
  const int turns = turns_for(c, bytes);
  const auto input = random_operand(c.on, elements * turns, dtype::bfloat16);
  auto residual = random_floats(c.on, elements * static_cast<std::size_t>(turns));
  const auto weight = random_floats(c.on, static_cast<std::size_t>(width));
  device_array<std::uint16_t> output(elements * static_cast<std::size_t>(turns));
  rms_norm_params p;
  p.rows = rows;
  p.width = width;
  p.epsilon = 1e-5F;
  p.weight = weight.data();
  bench_result r{"rms_norm", {{"rows", rows}, {"width", width}}};
  r.bytes = static_cast<double>(bytes) + 4.0 * width;
  r.microseconds = microseconds_of(c, turns, [&](int turn) {
    const std::size_t at = elements * static_cast<std::size_t>(turn);
    p.input = input.data() + at;
    p.residual = residual.data() + at;
    p.output = output.data() + at;
    rms_norm(p, c.on);
  });
  c.results.push_back(std::move(r));
}

void bench(bench_context& c) {
  const std::vector<int> rows{1, 64, 2048};
  for (const int count : c.either(rows, {3})) measure(c, count, c.either(4096, 64));
}

const bench_registration registered("rms_norm", bench);

}  // namespace
}  // namespace octavo::gpu
