// Two ways to the same result: scanning for words, a heap over a linked list for
// long runs, so that no text takes quadratic time.
#include "model/tokenizer/bpe_merge.hpp"

#include <algorithm>

namespace octavo::model {
namespace {

// Up to here a scan of all pairs per merge is faster than a heap.
constexpr std::size_t few_symbols_max = 48;
constexpr std::int32_t none = -1;
// Marks a node that has become part of the one before it.
constexpr token_id fused = -1;

}  // namespace

void bpe_merger::merge(std::span<const token_id> symbols, std::vector<token_id>& out) {
  if (symbols.size() <= few_symbols_max) {
    merge_few(symbols, out);
  } else {
    merge_many(symbols, out);
  }
}

void bpe_merger::merge_few(std::span<const token_id> symbols, std::vector<token_id>& out) {
  few_.assign(symbols.begin(), symbols.end());
  pairs_.clear();
  for (std::size_t i = 0; i + 1 < few_.size(); ++i) {
    pairs_.push_back(rules_.find(few_[i], few_[i + 1]));
  }
  for (;;) {
    std::size_t best = pairs_.size();
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      if (pairs_[i] == nullptr) continue;
      if (best == pairs_.size() || pairs_[i]->rank < pairs_[best]->rank) best = i;
    }
    if (best == pairs_.size()) break;
    few_[best] = pairs_[best]->result;
    few_.erase(few_.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    pairs_.erase(pairs_.begin() + static_cast<std::ptrdiff_t>(best));
    if (best > 0) pairs_[best - 1] = rules_.find(few_[best - 1], few_[best]);
    if (best < pairs_.size()) pairs_[best] = rules_.find(few_[best], few_[best + 1]);
  }
  out.insert(out.end(), few_.begin(), few_.end());
}

void bpe_merger::merge_many(std::span<const token_id> symbols, std::vector<token_id>& out) {
  const auto count = static_cast<std::int32_t>(symbols.size());
  const auto later = [](const candidate& a, const candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
  };
  nodes_.clear();
  for (std::int32_t i = 0; i < count; ++i) {
    nodes_.push_back({symbols[i], i - 1, i + 1 < count ? i + 1 : none});
  }
  heap_.clear();
  for (std::int32_t i = 0; i < count; ++i) offer(i);
  std::make_heap(heap_.begin(), heap_.end(), later);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const candidate best = heap_.back();
    heap_.pop_back();
    const node& left = nodes_[best.at];
    const bool current =
        left.token == best.left && left.after != none && nodes_[left.after].token == best.right;
    if (!current) continue;
    fuse(best);
    for (const std::int32_t at : {nodes_[best.at].before, best.at}) {
      const std::size_t before = heap_.size();
      offer(at);
      if (heap_.size() > before) std::push_heap(heap_.begin(), heap_.end(), later);
    }
  }
  for (std::int32_t i = 0; i != none; i = nodes_[i].after) out.push_back(nodes_[i].token);
}

/// Appends the pair that begins at `at` to the heap's array, if it can merge.
void bpe_merger::offer(std::int32_t at) {
  if (at == none || nodes_[at].after == none) return;
  const token_id left = nodes_[at].token;
  const token_id right = nodes_[nodes_[at].after].token;
  const merge_rule* rule = rules_.find(left, right);
  if (rule != nullptr) heap_.push_back({rule->rank, at, left, right, rule->result});
}

void bpe_merger::fuse(const candidate& best) {
  node& left = nodes_[best.at];
  node& right = nodes_[left.after];
  left.token = best.result;
  left.after = right.after;
  right.token = fused;
  if (left.after != none) nodes_[left.after].before = best.at;
}

}  // namespace octavo::model
