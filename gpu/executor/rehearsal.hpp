// The steps that a device runs before it serves anything, so that all the memory that
// serving can ever take is taken when what is left is measured: the code of kernels, which
// is loaded when it first runs, workspaces of libraries and communicators, captured graphs.
// vLLM's profile run is the model.
//
// All sequences share one KV block, so that the pool can be that small; what is computed
// means nothing.
#pragma once

#include <vector>

#include "gpu/executor/step_plan.hpp"
#include "model/config.hpp"
#include "model/generation/slot_table.hpp"
#include "model/generation/step_batch.hpp"

namespace octavo::gpu {

class rehearsal {
 public:
  /// Steps within `limits`; with `tokens_max` above 0 none has more rows, and no sequence
  /// more tokens: an emulated device takes too long over the largest.
  rehearsal(const model::model_config& config, const step_limits& limits, int tokens_max);

  /// Of each power of two of rows, and of the most, a step that has as many sequences as
  /// may be, all of which want logits; at last, the most rows of the fewest sequences. Valid as
  /// long as this lives.
  [[nodiscard]] std::vector<model::decoder_batch> batches() const;

  /// KV blocks that the steps read and write: the first of the pool.
  static constexpr std::int32_t blocks = 1;

 private:
  [[nodiscard]] model::decoder_batch batch_of(int rows, int sequences) const;

  int rows_max_;
  int sequences_max_;
  /// Tokens of a sequence, where its rows do not come to more.
  int length_;
  int length_max_;
  model::slot where_;
};

}  // namespace octavo::gpu
