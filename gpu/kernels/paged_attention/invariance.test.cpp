// Batch-invariant attention: a row's bits are the same alone and in company, in one
// chunk or several, split or not.
#include "gpu/kernels/paged_attention/test_batch.hpp"
#include "gpu/simt/schedules.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::gpu;

namespace {

attention_shape invariant_shape(dtype type, bool fp8, int window = 0) {
  attention_shape shape;
  shape.kv_heads = 1;
  shape.heads = 3;
  shape.head_dim = 32;
  shape.type = type;
  shape.kv_type = fp8 ? dtype::float8_e4m3 : type;
  shape.window = window;
  shape.batch_invariant = true;
  return shape;
}

int narrow_items(const test_batch& batch) {
  attention_planner planner = batch.planner();
  std::vector<std::byte> plan(planner.capacity().bytes());
  return planner.plan(batch.sequences(), plan).narrow;
}

// The outputs of the last row of the batch's first sequence.
std::vector<std::byte> last_row(const test_batch& batch) {
  const test_tensor out = batch.run();
  CHECK(batch.worst_error(out) < 3);
  const attention_sequence& s = batch.sequences().front();
  return batch.row_bytes(out, s.first_row + s.rows - 1);
}

}  // namespace

TEST_CASE("a row's bits do not depend on its company, its chunk, or splits") {
  for (const int window : {0, 700}) {
    for (const bool fp8 : {false, true}) {
      CAPTURE(window, fp8);
      const attention_shape shape = invariant_shape(dtype::bfloat16, fp8, window);
      // One pool and one set of queries: rows of positions 1281 to 1300, then others.
      const test_batch together(shape, {{1281, 20}, {900}, {40}, {3, 9}}, {.multiprocessors = 8});
      const auto alone = [&](int rows, int multiprocessors) {
        test_batch part = together.only_last_rows(rows);
        part.set_multiprocessors(multiprocessors);
        return part;
      };
      const auto expected = last_row(together);
      for (const int rows : {1, 2, 7, 20}) {
        for (const int multiprocessors : {1, 16}) {
          CAPTURE(rows, multiprocessors);
          CHECK(last_row(alone(rows, multiprocessors)) == expected);
        }
      }
      // The cases above hold what they claim: with room all tiles are split into segments,
      // without it those that come last are not, of which one has the row.
      CHECK(narrow_items(alone(1, 16)) == (window > 0 ? 2 : 3));
      CHECK(narrow_items(alone(20, 1)) < narrow_items(alone(20, 16)));
    }
  }
}

TEST_CASE("segments of which some rows see nothing change nothing") {
  // Positions 500 to 529 see five keys each: on one side of 512, the other, or both.
  const attention_shape shape = invariant_shape(dtype::float16, false, 5);
  for (const int multiprocessors : {1, 16}) {
    const test_batch batch(shape, {{500, 30}, {511}, {512}}, {.multiprocessors = multiprocessors});
    CHECK(batch.worst_error(batch.run()) < 3);
  }
}
