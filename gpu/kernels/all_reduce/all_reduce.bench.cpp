// Sums over ranks with the norm behind them, as decoders of several devices take them. Of
// machines with one device nothing is measured.
#include <functional>
#include <numeric>

#include "gpu/bench/bench.hpp"
#include "gpu/executor/make_communicator.hpp"
#include "gpu/executor/rank_threads.hpp"

namespace octavo::gpu {
namespace {

/// A rank's time of a call.
double measure_rank(const bench_context& c, communicator& others, int rank, int rows, int width) {
  stream on;
  const std::size_t count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(width);
  device_array<float> partial(count), residual(count), weight(static_cast<std::size_t>(width));
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
  return microseconds_of(c, on, c.either(20, 2), [&](int) {
    others.sum_and_norm(on, rank, {rows, width, partial.data()}, p, branch.data());
  });
}

void bench(bench_context& c) {
  std::vector<int> all(std::min<std::size_t>(devices().size(), 8));
  std::iota(all.begin(), all.end(), 0);
  if (all.size() < 2) return;
  const int width = c.either(8192, 64);
  const auto row_counts = c.either(std::vector{1, 8, 64, 256, 2048}, std::vector{3});
  const auto most = static_cast<std::size_t>(row_counts.back()) * static_cast<std::size_t>(width);
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
    bench_result r{"all_reduce", {{"ranks", all.size()}, {"rows", rows}, {"width", width}}};
    // The partial, the residual stream there and back, and what is normed.
    r.bytes = 14.0 * rows * width;
    // First without waiting for each other, so that the kernels are loaded.
    for (const bool pass : {true, false}) {
      others->let_pass(pass);
      on_all([&](int rank) {
        const double time = measure_rank(c, *others, rank, rows, width);
        if (rank == 0) r.microseconds = time;
      });
    }
    c.results.push_back(std::move(r));
  }
}

const bench_registration registered("all_reduce", bench);

}  // namespace
}  // namespace octavo::gpu
