// Rows of an 8B model's embedding table, for tokens at random.
#include "gpu/kernels/embedding/embedding.hpp"
#include "gpu/bench/bench.hpp"

namespace octavo::gpu {
namespace {

void measure(bench_context& c, const device_array<std::uint16_t>& table, int rows, int width) {
  const std::size_t elements = static_cast<std::size_t>(rows) * static_cast<std::size_t>(width);
  const int turns = turns_for(c, 6 * elements);
  const int vocabulary = static_cast<int>(table.size()) / width;
  const auto ids = random_ids(c.on, static_cast<std::size_t>(rows) * turns, vocabulary);
  device_array<float> output(elements * static_cast<std::size_t>(turns));
  embedding_params p;
  p.rows = rows;
  p.width = width;
  p.table = table.data();
  p.end = vocabulary;
  bench_result r{"embedding", {{"rows", rows}, {"width", width}}};
  r.bytes = 6.0 * static_cast<double>(elements) + 4.0 * rows;
  r.microseconds = microseconds_of(c, turns, [&](int turn) {
    p.ids = ids.data() + static_cast<std::size_t>(rows) * static_cast<std::size_t>(turn);
    p.output = output.data() + elements * static_cast<std::size_t>(turn);
    embed(p, c.on);
  });
  c.results.push_back(std::move(r));
}

void bench(bench_context& c) {
  const int width = c.either(4096, 64);
  const auto vocabulary = static_cast<std::size_t>(c.either(128'256, 256));
  const auto table =
      random_operand(c.on, vocabulary * static_cast<std::size_t>(width), dtype::bfloat16);
  const std::vector<int> rows{1, 64, 2048};
  for (const int count : c.either(rows, {3})) measure(c, table, count, width);
}

const bench_registration registered("embedding", bench);

}  // namespace
}  // namespace octavo::gpu
