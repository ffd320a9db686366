// Pieces without any key among a tile's pieces change no output.
#include <cstring>

#include "gpu/kernels/paged_attention/test_batch.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::gpu;

namespace {

/// Replaces the only item of a plan by pieces that end at the given positions.
void cut(test_batch::on_device& d, stream& s, const std::vector<int>& ends) {
  std::vector<std::byte> plan(d.run.capacity.bytes());
  d.plan.download(s, plan);
  s.synchronize();
  const bool wide = d.run.launch.wide > 0;
  const std::size_t offset = wide ? d.run.capacity.wide_offset() : 0;
  attention_item item;
  std::memcpy(&item, plan.data() + offset, sizeof item);
  REQUIRE(item.partial == -1);
  const merge_item merge{
      item.first_row, item.first_packed, item.packed, 0, static_cast<int>(ends.size()), {}};
  for (std::size_t i = 0; i < ends.size(); ++i) {
    item.kv_end = ends[i];
    item.partial = static_cast<int>(i) * item.packed;
    REQUIRE(item.partial + item.packed <= d.run.capacity.partial_rows);
    std::memcpy(plan.data() + offset + i * sizeof item, &item, sizeof item);
    item.kv_begin = ends[i];
  }
  std::memcpy(plan.data() + d.run.capacity.merges_offset(), &merge, sizeof merge);
  (wide ? d.run.launch.wide : d.run.launch.narrow) = static_cast<int>(ends.size());
  d.run.launch.merges = 1;
  d.plan.upload(s, plan);
  s.synchronize();
}

}  // namespace

TEST_CASE("empty pieces at the beginning, in the middle and at the end change nothing") {
  for (const int group : {1, 4}) {
    for (const int rows : {1, 10}) {
      attention_shape shape;
      shape.kv_heads = 2;
      shape.heads = 2 * group;
      shape.head_dim = 64;
      CAPTURE(group, rows);
      const test_batch batch(shape, {{101 - rows, rows}}, {.multiprocessors = 8});
      stream s;
      auto d = batch.upload(s);
      cut(d, s, {0, 0, 64, 64, 80, 101, 101});
      paged_attention(d.run, s);
      const test_tensor out = batch.download(s, d);
      CHECK(batch.worst_error(out) < 3);
    }
  }
}
