// What is known: a map from the key of a full block to the block that holds it.
//
// match() changes nothing; publish() and evict() are called in the order in
// which the scheduler reports results, so the index is at most one step behind
// the block manager, which has the last word on every hit.
//
// Where token ids are known they are compared on every hit, so that even a
// collision of keys cannot hand one request another's KV.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/block_key.hpp"
#include "core/step.hpp"
#include "core/units.hpp"

namespace octavo {

class prefix_index {
 public:
  explicit prefix_index(token_count block_size) : block_size_(block_size) {}

  /// Makes a block findable. Of equal content the first block stays the known one.
  void publish(const keyed_block& entry, std::span<const token_id> tokens);
  /// Forgets an entry; entries of other blocks with the same key stay.
  void evict(const keyed_block& entry);

  /// Appends to `hits` the blocks that hold the longest known run of leading
  /// `keys`. `tokens`, where given, holds block_size ids for each key.
  void match(std::span<const block_key> keys, std::span<const token_id> tokens,
             std::vector<block_id>& hits) const;

  /// Applies a batch's changes, in order, then answers its candidates.
  void answer(match_batch& batch);

  [[nodiscard]] std::size_t size() const { return blocks_.size(); }

 private:
  [[nodiscard]] bool same_tokens(block_id block, std::span<const token_id> tokens) const;

  token_count block_size_;
  std::unordered_map<block_key, block_id, block_key_hash> blocks_;
  /// block_size ids for each block, by block id, as far as any were published.
  std::vector<token_id> tokens_;
};

}  // namespace octavo
