// Lookup of known prefix blocks: see prefix_index.hpp.
#include "core/prefix_index.hpp"

#include <algorithm>
#include <cassert>

namespace octavo {

void prefix_index::publish(const keyed_block& entry, std::span<const token_id> tokens) {
  const bool inserted = blocks_.try_emplace(entry.key, entry.block).second;
  if (!inserted || tokens.empty()) return;
  const std::size_t width = static_cast<std::size_t>(block_size_.raw());
  assert(tokens.size() == width);
  const std::size_t at = std::size_t{entry.block.raw()} * width;
  if (tokens_.size() < at + width) tokens_.resize(at + width);
  std::ranges::copy(tokens, tokens_.begin() + static_cast<std::ptrdiff_t>(at));
}

void prefix_index::evict(const keyed_block& entry) {
  const auto found = blocks_.find(entry.key);
  if (found != blocks_.end() && found->second == entry.block) blocks_.erase(found);
}

bool prefix_index::same_tokens(block_id block, std::span<const token_id> tokens) const {
  const std::size_t width = tokens.size();
  const std::size_t at = std::size_t{block.raw()} * width;
  return at + width <= tokens_.size() &&
         std::equal(tokens.begin(), tokens.end(),
                    tokens_.begin() + static_cast<std::ptrdiff_t>(at));
}

void prefix_index::match(std::span<const block_key> keys, std::span<const token_id> tokens,
                         std::vector<block_id>& hits) const {
  const std::size_t width = static_cast<std::size_t>(block_size_.raw());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto found = blocks_.find(keys[i]);
    if (found == blocks_.end()) return;
    if (!tokens.empty() && !same_tokens(found->second, tokens.subspan(i * width, width))) return;
    hits.push_back(found->second);
  }
}

void prefix_index::answer(match_batch& batch) {
  const std::size_t width = static_cast<std::size_t>(block_size_.raw());
  for (const auto& change : batch.changes) {
    if (change.evicted) {
      evict(change.entry);
    } else {
      const auto all = std::span{batch.tokens};
      publish(change.entry, change.with_tokens ? all.subspan(change.tokens_begin, width)
                                               : std::span<const token_id>{});
    }
  }
  for (auto& candidate : batch.candidates) {
    candidate.hits_begin = static_cast<std::uint32_t>(batch.hits.size());
    const auto keys = std::span{batch.keys}.subspan(candidate.keys_begin, candidate.keys_count);
    const auto tokens = candidate.with_tokens
                            ? std::span<const token_id>{batch.tokens}.subspan(
                                  candidate.tokens_begin, candidate.keys_count * width)
                            : std::span<const token_id>{};
    match(keys, tokens, batch.hits);
    candidate.hits_count = static_cast<std::uint32_t>(batch.hits.size()) - candidate.hits_begin;
  }
}

}  // namespace octavo
