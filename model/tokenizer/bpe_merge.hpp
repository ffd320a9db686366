// The heart of byte-pair encoding: merge the adjacent pair of lowest rank, leftmost
// first, until none is left (Sennrich et al. 2016, "Neural Machine Translation of
// Rare Words with Subword Units").
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/units.hpp"
#include "model/tokenizer/merge_table.hpp"

namespace octavo::model {

/// Merges sequences of tokens. It keeps its working memory from one sequence to
/// the next, so each thread needs its own.
class bpe_merger {
 public:
  explicit bpe_merger(const merge_table& rules) : rules_(rules) {}

  /// Appends to `out` what `symbols` merge into. O(n log n) for n symbols.
  void merge(std::span<const token_id> symbols, std::vector<token_id>& out);

 private:
  struct node {
    token_id token;
    std::int32_t before;
    std::int32_t after;
  };
  /// A pair that may merge; out of date once either side has changed.
  struct candidate {
    std::uint32_t rank;
    std::int32_t at;
    token_id left;
    token_id right;
    token_id result;
  };

  void merge_few(std::span<const token_id> symbols, std::vector<token_id>& out);
  void merge_many(std::span<const token_id> symbols, std::vector<token_id>& out);
  void offer(std::int32_t at);
  void fuse(const candidate& best);

  const merge_table& rules_;
  std::vector<token_id> few_;
  std::vector<const merge_rule*> pairs_;
  std::vector<node> nodes_;
  std::vector<candidate> heap_;
};

}  // namespace octavo::model
