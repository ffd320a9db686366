// The soft cap over a large vocabulary's logits.
#include "gpu/kernels/logits/logits.hpp"
#include "gpu/bench/bench.hpp"

namespace octavo::gpu {
namespace {

void measure(bench_context& c, int rows) {
  const int vocabulary = c.either(128'256, 300);
  const std::size_t size = static_cast<std::size_t>(rows) * static_cast<std::size_t>(vocabulary);
  const int turns = turns_for(c, 8 * size);
  auto values = random_floats(c.on, size * static_cast<std::size_t>(turns));
  logits_params p;
  p.rows = rows;
  p.vocabulary = p.shard_width = vocabulary;
  p.soft_cap = 30;
  bench_result r{"logits", {{"rows", rows}, {"vocabulary", vocabulary}}};
  r.bytes = 8.0 * static_cast<double>(size);
  r.microseconds = microseconds_of(c, turns, [&](int turn) {
    p.output = values.data() + size * static_cast<std::size_t>(turn);
    p.input = p.output;
    finish_logits(p, c.on);
  });
  c.results.push_back(std::move(r));
}

void bench(bench_context& c) {
  const std::vector<int> rows{1, 64, 256};
  for (const int count : c.either(rows, {3})) measure(c, count);
}

const bench_registration registered("logits", bench);

}  // namespace
}  // namespace octavo::gpu
