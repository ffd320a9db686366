// The choice of tokens from an 8B model's logits: greedy, and drawn from what top-p leaves
// with penalties.
#include "gpu/kernels/sampling/sampling.hpp"
#include "gpu/bench/bench.hpp"
#include "gpu/kernels/sampling/sampling_batch.hpp"

namespace octavo::gpu {
namespace {

sampling_batch batch_of(int rows, bool draws) {
  sampling_batch batch({rows, 0, 0});
  sampling_parameters how;
  how.temperature = draws ? 1.0F : 0.0F;
  how.top_p = 0.9F;
  if (draws) how.presence_penalty = 0.5F;
  for (int row = 0; row < rows; ++row) {
    batch.add(how, {static_cast<std::uint64_t>(row), 0, {}, row});
  }
  return batch;
}

void measure(bench_context& c, int rows, bool draws) {
  const int vocabulary = c.either(128'256, 300);
  const auto count = static_cast<std::size_t>(rows);
  const std::size_t size = count * static_cast<std::size_t>(vocabulary);
  const int turns = turns_for(c, 4 * size);
  const auto logits = random_floats(c.on, size * static_cast<std::size_t>(turns));
  device_array<std::uint32_t> history(draws ? size : 0);
  history.fill_zero(c.on);
  const sampling_batch batch = batch_of(rows, draws);
  device_array<sampling_row> how(count);
  how.upload(c.on, batch.rows());
  device_array<std::int32_t> chosen(count);
  device_array<float> logprobs(count);
  device_array<std::byte> workspace(sampling_workspace_bytes(rows, vocabulary, 0));
  sampling_params p;
  p.rows = rows;
  p.vocabulary = vocabulary;
  p.how = how.data();
  p.history = history.data();
  p.any_draws = batch.any_draws();
  p.chosen = chosen.data();
  p.logprobs = logprobs.data();
  p.workspace = workspace.data();
  p.workspace_bytes = workspace.bytes();
  bench_result r{
      "sampling",
      {{"rows", rows}, {"vocabulary", vocabulary}, {"how", draws ? "top_p, penalties" : "greedy"}}};
  // Each logit once, and with penalties its count.
  r.bytes = (draws ? 8.0 : 4.0) * static_cast<double>(size);
  r.microseconds = microseconds_of(c, turns, [&](int turn) {
    p.logits = logits.data() + size * static_cast<std::size_t>(turn);
    sample(p, c.on);
  });
  c.results.push_back(std::move(r));
}

void bench(bench_context& c) {
  const std::vector<int> rows{1, 64, 256};
  for (const int count : c.either(rows, {3})) {
    for (const bool draws : {false, true}) measure(c, count, draws);
  }
}

const bench_registration registered("sampling", bench);

}  // namespace
}  // namespace octavo::gpu
