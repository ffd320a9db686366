// Which steps are rehearsed: counted by hand.
#include "gpu/executor/rehearsal.hpp"

#include "model/container/checkpoint.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/expected_logits.hpp"

using namespace octavo;
using namespace octavo::gpu;

namespace {

using numbers = std::vector<std::size_t>;

struct counted {
  numbers rows, sequences;
};

// Rows and sequences of all steps. Each is laid out, which checks it against the limits.
counted count(const step_limits& limits, int tokens_max) {
  const auto source = model::checkpoint::open(tiny_model_folder("llama3"));
  const rehearsal steps{source.config(), limits, tokens_max};
  step_plan plan{source.config(), 1, {}, limits};
  counted c;
  for (const model::decoder_batch& batch : steps.batches()) {
    plan.prepare(batch);
    c.rows.push_back(batch.tokens.size());
    c.sequences.push_back(batch.sequences.size());
    REQUIRE(batch.logit_rows.size() == batch.sequences.size());
    for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
      const model::batch_sequence& s = batch.sequences[i];
      CHECK(batch.logit_rows[i] == s.first_row + s.rows - 1);
    }
    CHECK(batch.logit_rows.back() + 1 == batch.tokens.size());
  }
  return c;
}

}  // namespace

TEST_CASE("steps of all sizes are rehearsed, the largest with most and with fewest sequences") {
  const counted c =
      count({.rows_max = 10, .sequences_max = 3, .model_len_max = 64, .multiprocessors = 4}, 0);
  CHECK(c.rows == numbers{1, 2, 4, 8, 10, 10});
  CHECK(c.sequences == numbers{1, 2, 3, 3, 3, 1});
}

TEST_CASE("a rehearsed step has no more rows than its sequences have positions") {
  const counted c =
      count({.rows_max = 100, .sequences_max = 3, .model_len_max = 20, .multiprocessors = 4}, 0);
  CHECK(c.rows == numbers{1, 2, 4, 8, 16, 32, 60, 60});
  CHECK(c.sequences == numbers{1, 2, 3, 3, 3, 3, 3, 3});
}

TEST_CASE("a rehearsal can be kept small") {
  const counted c =
      count({.rows_max = 512, .sequences_max = 64, .model_len_max = 4096, .multiprocessors = 4}, 6);
  CHECK(c.rows == numbers{1, 2, 4, 6, 6});
  CHECK(c.sequences == numbers{1, 2, 4, 6, 1});
}
