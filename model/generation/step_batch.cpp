// Rows of a step: see step_batch.hpp.
#include "model/generation/step_batch.hpp"

namespace octavo::model {

decoder_batch batch_of(const step& plan, const slot_table& slots) {
  decoder_batch batch;
  for (const sequence_work& work : plan.work) {
    const slot& state = slots.at(work.slot);
    const auto first = static_cast<std::size_t>(work.first_position.raw());
    const auto count = static_cast<std::size_t>(work.count.raw());
    const auto row = static_cast<std::uint32_t>(batch.tokens.size());
    if (count == 0) continue;
    batch.sequences.push_back(
        {&state, work.first_position.raw(), row, static_cast<std::uint32_t>(count)});
    batch.tokens.insert(batch.tokens.end(),
                        state.tokens.begin() + static_cast<std::ptrdiff_t>(first),
                        state.tokens.begin() + static_cast<std::ptrdiff_t>(first + count));
    if (work.samples > 0) batch.logit_rows.push_back(static_cast<std::uint32_t>(row + count - 1));
  }
  return batch;
}

}  // namespace octavo::model
