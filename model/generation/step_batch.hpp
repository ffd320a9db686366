// What a step asks a decoder to compute, as rows of tokens: the same for every
// executor that runs a model.
#pragma once

#include <cstdint>
#include <vector>

#include "core/step.hpp"
#include "model/generation/slot_table.hpp"

namespace octavo::model {

/// Consecutive tokens of one sequence.
struct batch_sequence {
  const slot* where = nullptr;
  std::int32_t first_position = 0;
  std::uint32_t first_row = 0;
  std::uint32_t rows = 0;
};

struct decoder_batch {
  std::vector<token_id> tokens;           ///< one for each row
  std::vector<batch_sequence> sequences;  ///< cover the rows in order
  std::vector<std::uint32_t> logit_rows;  ///< rows whose logits are wanted, ascending
};

/// The rows of a plan that `slots` have followed.
[[nodiscard]] decoder_batch batch_of(const step& plan, const slot_table& slots);

}  // namespace octavo::model
