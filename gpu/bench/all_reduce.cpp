// Sums over ranks with the norm behind them, as decoders of several devices take them. Of
// machines with one device nothing is measured.
#include <functional>
#include <numeric>

#include "gpu/bench/bench.hpp"
#include "gpu/executor/make_communicator.hpp"
#include "gpu/executor/rank_threads.hpp"

namespace octavo::gpu {
namespace {

constexpr int width = 8192;
constexpr int row_counts[] = {1, 8, 64, 256, 2048};

/// Rank 0's time of a call.
double measure_rank(communicator& others, int rank, int rows) {
  stream on;
  const std::size_t count = static_cast<std::size_t>(rows) * width;
  device_array<float> partial(count), residual(count), weight(width);
  device_array<std::uint16_t> normed(count), branch(count);
  for (auto* values : {&partial, &residual, &weight}) values->fill_zero(on);
  rms_norm_params p;
  p.type = dtype::bfloat16;
  p.rows = rows;
  p.width = width;
  p.epsilon = 1e-5F;
  p.residual = residual.data();
  p.weight = weight.data();
  p.output = normed.data();
  return microseconds_of(on, 20, [&](int) {
    others.sum_and_norm(on, rank, {rows, width, partial.data()}, p, branch.data());
  });
}

}  // namespace

void bench_all_reduce(bench_context& c) {
  std::vector<int> all(std::min<std::size_t>(devices().size(), 8));
  std::iota(all.begin(), all.end(), 0);
  if (all.size() < 2) return;
  const std::size_t most = std::size_t{row_counts[std::size(row_counts) - 1]} * width;
  const auto others = make_communicator(all, most * sizeof(float), false);
  rank_threads threads(all);
  const auto on_all = [&](const std::function<void(int)>& work) {
    threads.run(work, [&] { others->abandon(); });
  };
  on_all([&](int rank) {
    for (const int other : all) {
      if (others->reads_peers()) enable_peer_access(rank, other);
    }
  });
  for (const int rows : row_counts) {
    bench_result r{
        "all_reduce", {{"ranks", all.size()}, {"rows", rows}, {"width", width}}, 0, 0, 0};
    // The partial, the residual stream there and back, and what is normed.
    r.bytes = 14.0 * rows * width;
    on_all([&](int rank) {
      const double time = measure_rank(*others, rank, rows);
      if (rank == 0) r.microseconds = time;
    });
    c.results.push_back(std::move(r));
  }
}

}  // namespace octavo::gpu
