// Steps before serving: see rehearsal.hpp.
#include "gpu/executor/rehearsal.hpp"

#include <algorithm>

#include "model/generation/kv_groups.hpp"

namespace octavo::gpu {
namespace {

/// So long that attention is cut among multiprocessors and merged; longer contexts take
/// time, but neither kernels nor memory of their own.
constexpr int usual_length = 4096;

}  // namespace

rehearsal::rehearsal(const model::model_config& config, const step_limits& limits, int tokens_max)
    : rows_max_(tokens_max > 0 ? std::min(limits.rows_max, tokens_max) : limits.rows_max),
      sequences_max_(std::min(limits.sequences_max, rows_max_)),
      length_(std::min(limits.model_len_max, tokens_max > 0 ? tokens_max : usual_length)),
      length_max_(limits.model_len_max) {
  const auto groups = model::engine_kv_groups(config, kv_page_tokens);
  const int longest = std::max(length_, std::min(rows_max_, length_max_));
  const auto pages = static_cast<std::size_t>(longest / kv_page_tokens + 1);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    where_.tables[g].assign(pages * static_cast<std::size_t>(groups[g].pool_blocks), block_id{0});
  }
}

std::vector<model::decoder_batch> rehearsal::batches() const {
  std::vector<model::decoder_batch> all;
  for (int rows = 1; rows < rows_max_; rows *= 2) {
    all.push_back(batch_of(rows, std::min(rows, sequences_max_)));
  }
  all.push_back(batch_of(rows_max_, sequences_max_));
  const int fewest = (rows_max_ + length_max_ - 1) / length_max_;
  if (fewest < sequences_max_) all.push_back(batch_of(rows_max_, fewest));
  return all;
}

model::decoder_batch rehearsal::batch_of(int rows, int sequences) const {
  model::decoder_batch batch;
  // As many rows as their positions allow; the first sequences have one more than others.
  const int count = std::min(rows, sequences * length_max_);
  batch.tokens.assign(static_cast<std::size_t>(count), 0);
  int first = 0;
  for (int i = 0; i < sequences; ++i) {
    const int own = count / sequences + (i < count % sequences ? 1 : 0);
    batch.sequences.push_back({&where_, std::max(length_ - own, 0),
                               static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(own)});
    first += own;
    batch.logit_rows.push_back(static_cast<std::uint32_t>(first - 1));
  }
  return batch;
}

}  // namespace octavo::gpu
