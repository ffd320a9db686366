// Where KV lies: block tables, reference counts and the free list.
//
// Every operation is O(1) per block it names. The free list is a queue in order
// of release, a request's blocks tail first, so that among one request's blocks
// the tail is reused before the head, and between requests the least recently
// used goes first. A free block keeps what it holds until it is reused (lazy
// eviction), so a hit can bring it back. Blocks that hold nothing findable are
// reused before those that do. Metadata grows with the blocks ever used, not
// with the pool.
//
// Only commit() changes anything; a plan that over-commits is a programming
// error and is asserted, never refused.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/config.hpp"
#include "core/step.hpp"
#include "core/units.hpp"

namespace octavo {

/// Counted once, at commit; they never fall.
struct cache_statistics {
  std::int64_t query_tokens = 0;  ///< of first admissions
  std::int64_t hit_tokens = 0;
  std::int64_t resumed_query_tokens = 0;  ///< of admissions after a preemption
  std::int64_t resumed_hit_tokens = 0;
  std::int64_t evicted_blocks = 0;
};

class block_manager {
 public:
  explicit block_manager(const engine_config& config);

  /// Cuts each candidate's hits at the first block that no longer holds what the
  /// prefix index believes. Changes nothing but the batch.
  void confirm(match_batch& batch) const;

  /// Carries out a plan: releases, forks, preemptions, admissions, growth, names.
  void commit(step& plan);

  [[nodiscard]] block_count free() const;
  [[nodiscard]] block_count total() const { return total_; }
  [[nodiscard]] const cache_statistics& statistics() const { return statistics_; }
  /// The block table of a slot, for one KV group; released entries are absent.
  [[nodiscard]] const std::vector<block_id>& table(std::uint32_t slot, std::size_t group) const;

  /// Recounts everything from the tables and throws std::logic_error naming the
  /// first disagreement. For tests, fuzzing and idle moments.
  void check_integrity() const;

 private:
  static constexpr std::uint32_t nil = 0xffffffff;

  struct block_state {
    std::uint32_t references = 0;
    std::uint32_t previous = nil;  // free list
    std::uint32_t next = nil;
    bool findable = false;
    step_id named_in;  // the step that computes its content
    block_key key;
  };
  struct slot_state {
    bool live = false;
    std::array<std::vector<block_id>, max_kv_groups> tables;
    /// Table indices below this were released as out of the window.
    std::array<std::int32_t, max_kv_groups> start{};
  };

  void release_slot(std::uint32_t slot);
  void fork_slot(const fork_command& command, step& plan);
  void admit_slot(const admission_command& command, const step& plan);
  void grow_slot(const sequence_work& work, step& plan);
  void name_blocks(const naming_command& command, step& plan);

  block_id take(step& plan);
  void drop(block_id block);
  void touch(block_id block);
  void link_back(std::uint32_t block);
  void link_front(std::uint32_t block);
  void unlink(std::uint32_t block);
  slot_state& open_slot(std::uint32_t slot);

  token_count block_size_;
  std::vector<kv_group> groups_;
  block_count total_;
  /// Blocks with an id below this have been used; the rest are fresh.
  std::vector<block_state> blocks_;
  std::uint32_t head_ = nil;
  std::uint32_t tail_ = nil;
  std::int32_t listed_ = 0;
  std::vector<slot_state> slots_;
  cache_statistics statistics_;
};

}  // namespace octavo
