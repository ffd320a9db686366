// Rows of logits that several samples start from.
#include "gpu/kernels/row_gather/row_gather.hpp"
#include "gpu/bench/bench.hpp"

namespace octavo::gpu {
namespace {

void measure(bench_context& c, int rows) {
  const auto row_bytes = static_cast<std::size_t>(4 * c.either(128'256, 300));
  const std::size_t bytes = static_cast<std::size_t>(rows) * row_bytes;
  const int turns = turns_for(c, 2 * bytes);
  const auto input = random_bytes(c.on, bytes * static_cast<std::size_t>(turns));
  device_array<std::byte> output(bytes * static_cast<std::size_t>(turns));
  const auto ids = random_ids(c.on, static_cast<std::size_t>(rows), rows);
  row_gather_params p;
  p.rows = rows;
  p.row_bytes = row_bytes;
  p.ids = ids.data();
  bench_result r{"row_gather", {{"rows", rows}, {"row_bytes", row_bytes}}};
  r.bytes = 2.0 * static_cast<double>(bytes);
  r.microseconds = microseconds_of(c, turns, [&](int turn) {
    p.input = input.data() + bytes * static_cast<std::size_t>(turn);
    p.output = output.data() + bytes * static_cast<std::size_t>(turn);
    gather_rows(p, c.on);
  });
  c.results.push_back(std::move(r));
}

void bench(bench_context& c) {
  const std::vector<int> rows{1, 64, 256};
  for (const int count : c.either(rows, {3})) measure(c, count);
}

const bench_registration registered("row_gather", bench);

}  // namespace
}  // namespace octavo::gpu
