// How a tensor-parallel group shares a model (Shoeybi et al., arXiv 1909.08053),
// the same for every executor: which outputs, inputs and tokens are whose.
//
//   for (int rank = 0; rank < tp; ++rank) {
//     rank_share mine = share_of(config, tp, rank);
//     slice_rows(q, mine.query, "blk.0.attn_q");                // weight_slice.hpp
//     slice_columns(output, mine.query, "blk.0.attn_output");
//   }
//
// | weight                            | cut by                 | afterwards          |
// |-----------------------------------|------------------------|---------------------|
// | q, gate, up, and their biases     | outputs                |                     |
// | k, v, and their biases            | outputs; whole heads,  |                     |
// |                                   | copied where they are  |                     |
// |                                   | fewer than ranks       |                     |
// | attention output, down            | inputs                 | sum over the ranks  |
// | the biases of these               | not: rank 0 adds them  |                     |
// | embedding                         | tokens                 | sum, or the one row |
// | head                              | tokens                 | gather              |
// | norms                             | not: each rank has all |                     |
//
// Partial sums are added in rank order wherever bits are to be repeatable.
#pragma once

#include <cstdint>
#include <vector>

#include "model/config.hpp"

namespace octavo::model {

/// [begin, end).
struct index_range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  [[nodiscard]] std::int64_t size() const { return end - begin; }
  friend bool operator==(const index_range&, const index_range&) = default;
};

/// What one rank holds, as rows or columns of the stored matrices.
struct rank_share {
  index_range query;  ///< outputs of q, inputs of the attention's output
  /// Outputs of k and v. Where ranks share a head, each has a copy of it.
  index_range kv;
  index_range mlp;  ///< outputs of gate and up, inputs of down
  /// Token ids. Every rank but the last has vocabulary_per_rank.
  index_range vocabulary;
};

/// Token ids of a rank: the vocabulary by the ranks, rounded up. A gather of so
/// many from each rank, cut to the vocabulary, is in the order of ids.
[[nodiscard]] std::int64_t vocabulary_per_rank(const model_config& config, int tp);

/// The share of rank 0 .. tp - 1. Throws as check_tensor_parallel, and
/// infeasible_error where a rank would have no tokens.
[[nodiscard]] rank_share share_of(const model_config& config, int tp, int rank);

/// Those of a vector's elements that lie in `range`; none where there are none.
[[nodiscard]] std::vector<float> slice_vector(const std::vector<float>& from, index_range range);

}  // namespace octavo::model
