// The scheduler's own account of KV blocks: how many are free, exactly, by
// arithmetic, without asking the block manager. Free counts blocks that hold
// nothing and blocks that are kept only as cache.
//
// A sequence's blocks are anonymous (only it can hold them, a number suffices)
// until the block manager names them: blocks whose content is published, or that
// forked samples share. Named blocks carry a reference count here, mirrored from
// the commands the scheduler itself gives; the block manager asserts after each
// commit that both agree.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/config.hpp"
#include "core/units.hpp"

namespace octavo {

/// One sequence's holdings.
struct block_account {
  std::int32_t anonymous = 0;
  /// Per KV group: table indices [start, end) are held.
  std::array<std::int32_t, max_kv_groups> start{};
  std::array<std::int32_t, max_kv_groups> end{};
  /// The first blocks of group 0, in order, named by the block manager.
  std::vector<block_id> named;

  [[nodiscard]] std::int32_t held() const {
    return anonymous + static_cast<std::int32_t>(named.size());
  }
};

class block_ledger {
 public:
  explicit block_ledger(const engine_config& config);

  [[nodiscard]] block_count free() const { return free_; }
  [[nodiscard]] block_count used() const { return total_ - free_; }
  [[nodiscard]] block_count total() const { return total_; }
  /// Σ over named blocks of holders beyond the first.
  [[nodiscard]] std::int64_t shared_references() const { return shared_references_; }

  /// Blocks that must come from the free ones so that `tokens` tokens have a
  /// place, after those out of every window of `first_position` are released.
  [[nodiscard]] block_count growth(const block_account& account, token_count tokens,
                                   token_count first_position) const;
  /// Takes them. Precondition: growth(…) <= free().
  void grow(block_account& account, token_count tokens, token_count first_position);

  /// Of these cached blocks, those that nobody holds: touching them uses free ones.
  [[nodiscard]] block_count unheld(std::span<const block_id> hits) const;
  /// Starts an account on cached blocks. Precondition: unheld(hits) <= free().
  void touch(block_account& account, std::span<const block_id> hits);

  /// The account's next anonymous block is now known to be `block`.
  void name(block_account& account, block_id block);
  /// `child` shares the parent's first `count` blocks, all named.
  void share(const block_account& parent, block_account& child, std::int32_t count);
  /// Gives everything back and returns how many blocks became free.
  block_count release(block_account& account);

 private:
  std::uint32_t& references(block_id block);

  token_count block_size_;
  std::vector<kv_group> groups_;
  block_count total_;
  block_count free_;
  std::int64_t shared_references_ = 0;
  std::vector<std::uint32_t> references_;
};

}  // namespace octavo
