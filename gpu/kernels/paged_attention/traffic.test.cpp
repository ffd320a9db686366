// Bytes that decoding moves against the least possible, as the emulator counts them,
// and conflicts of shared memory banks.
#if !defined(OCTAVO_NATIVE_CUDA)
#include <iostream>

#include "gpu/kernels/paged_attention/test_batch.hpp"
#include "gpu/simt/counters.hpp"
#include "gpu/simt/schedules.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::gpu;

namespace {

struct traffic {
  double ratio;      // bytes moved, of the least possible
  double conflicts;  // of shared memory accesses
};

traffic traffic_of(const attention_shape& shape, const std::vector<test_sequence>& sequences) {
  const simt::scoped_options scope;
  simt::current_options().count_bank_conflicts = true;
  const test_batch batch(shape, sequences, {.multiprocessors = 2});
  stream s;
  const auto d = batch.upload(s);
  s.synchronize();
  simt::reset_counters();
  paged_attention(d.run, s);
  s.synchronize();
  const simt::counts counts = simt::counters();
  const auto moved = static_cast<double>(counts.global_bytes_read + counts.global_bytes_written);
  const traffic t{moved / batch.bytes_least(), static_cast<double>(counts.bank_conflicts) /
                                                   static_cast<double>(counts.shared_wavefronts)};
  std::cout << "paged attention, head_dim " << shape.head_dim << ", group " << shape.group() << ", "
            << name_of(shape.kv_type) << " keys: " << t.ratio << " x the least bytes, "
            << 100 * t.conflicts << " % bank conflicts\n";
  return t;
}

}  // namespace

TEST_CASE("decoding moves hardly more bytes than there are keys and values") {
  for (const int group : {1, 4, 8}) {
    for (const bool fp8 : {false, true}) {
      attention_shape shape;
      shape.kv_heads = 2;
      shape.heads = 2 * group;
      shape.head_dim = 128;
      if (fp8) shape.kv_type = dtype::float8_e4m3;
      CAPTURE(group, fp8);
      const traffic t = traffic_of(shape, {{999}, {2047}, {511}, {1300}});
      CHECK(t.ratio <= 1.05);
      // On CUDA cores keys and values do not go through shared memory.
      if (group >= 4) CHECK(t.conflicts < 0.10);
    }
  }
}
#endif
