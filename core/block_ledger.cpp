// Exact free-block arithmetic: see block_ledger.hpp.
#include "core/block_ledger.hpp"

#include <algorithm>
#include <cassert>

namespace octavo {

block_ledger::block_ledger(const engine_config& config)
    : block_size_(config.block_size),
      groups_(config.kv_groups),
      total_(config.num_blocks),
      free_(config.num_blocks) {}

std::uint32_t& block_ledger::references(block_id block) {
  if (block.raw() >= references_.size()) references_.resize(block.raw() + 1U);
  return references_[block.raw()];
}

block_count block_ledger::growth(const block_account& account, token_count tokens,
                                 token_count first_position) const {
  const std::int32_t end = blocks_for(tokens, block_size_).raw();
  std::int32_t need = 0;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const std::int32_t start = window_start(groups_[g], first_position, block_size_);
    const std::int32_t more =
        std::max(0, end - account.end[g]) - std::max(0, start - account.start[g]);
    need += more * groups_[g].pool_blocks;
  }
  return block_count{need};
}

void block_ledger::grow(block_account& account, token_count tokens, token_count first_position) {
  const block_count need = growth(account, tokens, first_position);
  assert(need <= free_);
  const std::int32_t end = blocks_for(tokens, block_size_).raw();
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    account.end[g] = std::max(account.end[g], end);
    account.start[g] =
        std::max(account.start[g], window_start(groups_[g], first_position, block_size_));
  }
  account.anonymous += need.raw();
  free_ -= need;
}

block_count block_ledger::unheld(std::span<const block_id> hits) const {
  std::int32_t count = 0;
  for (const block_id block : hits) {
    if (block.raw() >= references_.size() || references_[block.raw()] == 0) ++count;
  }
  return block_count{count};
}

void block_ledger::touch(block_account& account, std::span<const block_id> hits) {
  assert(account.held() == 0);
  for (const block_id block : hits) {
    if (references(block)++ == 0) {
      --free_;
    } else {
      ++shared_references_;
    }
  }
  assert(free_.raw() >= 0);
  account.named.assign(hits.begin(), hits.end());
  account.end[0] = static_cast<std::int32_t>(hits.size());
}

void block_ledger::name(block_account& account, block_id block) {
  assert(account.anonymous > 0 && references(block) == 0);
  --account.anonymous;
  references(block) = 1;
  account.named.push_back(block);
}

void block_ledger::share(const block_account& parent, block_account& child, std::int32_t count) {
  assert(static_cast<std::size_t>(count) <= parent.named.size() && child.held() == 0);
  const auto shared = std::span{parent.named}.first(static_cast<std::size_t>(count));
  for (const block_id block : shared) {
    assert(references(block) > 0);
    ++references(block);
    ++shared_references_;
  }
  child.named.assign(shared.begin(), shared.end());
  child.end[0] = count;
}

block_count block_ledger::release(block_account& account) {
  block_count freed{account.anonymous};
  for (const block_id block : account.named) {
    assert(references(block) > 0);
    if (--references(block) == 0) {
      ++freed;
    } else {
      --shared_references_;
    }
  }
  free_ += freed;
  assert(free_ <= total_);
  account.anonymous = 0;
  account.start = {};
  account.end = {};
  account.named.clear();
  return freed;
}

}  // namespace octavo
