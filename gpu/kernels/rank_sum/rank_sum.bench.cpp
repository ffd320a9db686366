// The sum of four ranks' parts, all of which lie on this device: what it takes beside the
// links between devices.
#include "gpu/kernels/rank_sum/rank_sum.hpp"
#include "gpu/bench/bench.hpp"

namespace octavo::gpu {
namespace {

constexpr int ranks = 4;

void measure(bench_context& c, int rows, int width) {
  const std::size_t elements = static_cast<std::size_t>(rows) * static_cast<std::size_t>(width);
  const std::size_t bytes = elements * (ranks + 1) * sizeof(float);
  const int turns = turns_for(c, bytes);
  const auto parts = random_floats(c.on, elements * ranks * static_cast<std::size_t>(turns));
  device_array<float> output(elements * static_cast<std::size_t>(turns));
  rank_sum_params p;
  p.ranks = ranks;
  p.count = static_cast<std::int64_t>(elements);
  bench_result r{"rank_sum", {{"ranks", ranks}, {"rows", rows}, {"width", width}}};
  r.bytes = static_cast<double>(bytes);
  r.microseconds = microseconds_of(c, turns, [&](int turn) {
    const auto at = static_cast<std::size_t>(turn);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      p.parts[rank] = parts.data() + (at * ranks + rank) * elements;
    }
    p.output = output.data() + at * elements;
    rank_sum(p, c.on);
  });
  c.results.push_back(std::move(r));
}

void bench(bench_context& c) {
  const std::vector<int> rows{1, 64, 2048};
  for (const int count : c.either(rows, {3})) measure(c, count, c.either(4096, 64));
}

const bench_registration registered("rank_sum", bench);

}  // namespace
}  // namespace octavo::gpu
