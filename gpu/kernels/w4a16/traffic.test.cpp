// Bytes that 4-bit products move, as the emulator counts them, against the least
// that any kernel could: each code, scale, zero point, activation and result once.
#include "gpu/kernels/w4a16/stored_samples.hpp"
#include "gpu/kernels/w4a16/w4a16.hpp"
#include "tests/support/catch.hpp"

#if !defined(OCTAVO_NATIVE_CUDA)
#include "gpu/simt/counters.hpp"
#include "gpu/simt/schedules.hpp"

using namespace octavo;
using namespace octavo::gpu;

namespace {

struct traffic {
  double least = 0;
  /// Each byte once: what goes to and from memory, the rest coming from caches.
  double distinct = 0;
  /// Of these, partial sums, which blocks pass to each other through the cache.
  double partial = 0;
};

traffic measure(int tokens, int outputs, int inputs, int group, int multiprocessors) {
  stored_sample stored(31);
  stored.make_awq(outputs, inputs, group);
  const simt::scoped_options scope;
  simt::current_options().count_distinct_bytes = true;
  lane_case c(stored.matrix, dtype::float16, tokens);
  device_array<std::uint16_t> output(static_cast<std::size_t>(tokens * outputs));
  c.product.output = output.data();
  c.product.output_type = dtype::float16;
  c.product.multiprocessors = multiprocessors;
  test_workspace workspace(c.s, w4a16_needs(c.product));
  c.product.workspace = workspace.view();
  c.s.synchronize();
  simt::reset_counters();
  w4a16(c.s, c.product);
  c.s.synchronize();
  const simt::counts counted = simt::counters();
  traffic t;
  const double weights = double(outputs) * inputs;
  // 4-bit codes; a 16-bit scale and a 4-bit zero point a group.
  t.least = weights * (0.5 + 2.5 / group) + 2.0 * tokens * (inputs + outputs);
  t.distinct = static_cast<double>(counted.distinct_bytes_read + counted.distinct_bytes_written);
  t.partial = static_cast<double>(counted.distinct_bytes_written) - 2.0 * tokens * outputs;
  UNSCOPED_INFO(tokens << " tokens: " << t.distinct / t.least
                       << " of the least bytes, partial sums " << t.partial / t.least);
  return t;
}

}  // namespace

TEST_CASE("4-bit products move at most 1.05 of the least possible bytes") {
  for (const int group : {128, 64}) {
    // Runs along the inputs that blocks share, with partial sums.
    const traffic one = measure(1, 1024, 2048, group, 32);
    CHECK(one.partial > 0);
    CHECK(one.distinct < 1.05 * one.least);
    const traffic sixteen = measure(16, 1024, 2048, group, 4);
    CHECK(sixteen.distinct < 1.05 * sixteen.least);
    // Tiles that blocks share: partial sums are written and read in the cache.
    const traffic cut = measure(16, 1024, 2048, group, 5);
    CHECK(cut.partial > 0);
    CHECK(cut.distinct - 2 * cut.partial < 1.05 * cut.least);
  }
}
#endif
