// Block tables, reference counts, free list: see block_manager.hpp.
#include "core/block_manager.hpp"

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <string>

namespace octavo {

block_manager::block_manager(const engine_config& config)
    : block_size_(config.block_size), groups_(config.kv_groups), total_(config.num_blocks) {}

block_count block_manager::free() const {
  return total_ - block_count{static_cast<std::int32_t>(blocks_.size())} + block_count{listed_};
}

const std::vector<block_id>& block_manager::table(std::uint32_t slot, std::size_t group) const {
  return slots_.at(slot).tables.at(group);
}

void block_manager::confirm(match_batch& batch) const {
  for (auto& candidate : batch.candidates) {
    std::uint32_t good = 0;
    while (good < candidate.hits_count) {
      const block_id block = batch.hits[candidate.hits_begin + good];
      const block_state& state = blocks_[block.raw()];
      if (!state.findable || state.named_in > batch.booked) break;
      if (state.key != batch.keys[candidate.keys_begin + good]) break;
      ++good;
    }
    candidate.hits_count = good;
  }
}

void block_manager::commit(step& plan) {
  for (const auto& command : plan.releases) release_slot(command.slot);
  // Touch every hit before taking any block, lest taking evict a hit.
  for (const block_id hit : plan.hits) touch(hit);
  for (const auto& command : plan.forks) fork_slot(command, plan);
  for (const auto& command : plan.preemptions) release_slot(command.slot);
  for (const auto& command : plan.admissions) admit_slot(command, plan);
  for (const auto& work : plan.work) grow_slot(work, plan);
  for (const auto& command : plan.namings) name_blocks(command, plan);
  if (free() != plan.expected_free) {
    throw std::logic_error("block manager has " + std::to_string(free().raw()) +
                           " free blocks after the commit, the scheduler expects " +
                           std::to_string(plan.expected_free.raw()));
  }
}

void block_manager::release_slot(std::uint32_t slot) {
  slot_state& state = slots_[slot];
  assert(state.live);
  for (auto& table : state.tables) {
    for (auto block = table.rbegin(); block != table.rend(); ++block) drop(*block);
    table.clear();
  }
  state.start = {};
  state.live = false;
}

void block_manager::fork_slot(const fork_command& command, step& plan) {
  slot_state& child = open_slot(command.child_slot);
  const auto& parent = slots_[command.parent_slot].tables[0];
  const auto shared = static_cast<std::size_t>(command.shared_blocks);
  assert(shared <= parent.size());
  for (std::size_t i = 0; i < shared; ++i) touch(parent[i]);
  child.tables[0].assign(parent.begin(), parent.begin() + command.shared_blocks);
  if (!command.copy_last) return;
  const block_id source = parent.at(shared);
  const block_id copy = take(plan);
  plan.table_changes.push_back(
      {command.child_slot, 0, 0, static_cast<std::uint32_t>(plan.new_blocks.size()), 1});
  plan.new_blocks.push_back(copy);
  plan.copies.push_back({source, copy});
  child.tables[0].push_back(copy);
}

void block_manager::admit_slot(const admission_command& command, const step& plan) {
  slot_state& state = open_slot(command.slot);
  const auto first = plan.hits.begin() + command.hits_begin;
  state.tables[0].assign(first, first + command.hits_count);
  const std::int64_t hit = std::int64_t{command.hits_count} * block_size_.raw();
  if (command.resumed) {
    statistics_.resumed_query_tokens += command.query_tokens.raw();
    statistics_.resumed_hit_tokens += hit;
  } else {
    statistics_.query_tokens += command.query_tokens.raw();
    statistics_.hit_tokens += hit;
  }
}

void block_manager::grow_slot(const sequence_work& work, step& plan) {
  slot_state& state = slots_[work.slot];
  const auto end = static_cast<std::size_t>(blocks_for(work.hold_tokens, block_size_).raw());
  // All groups give back before any takes: what one releases, another may need.
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    auto& table = state.tables[g];
    const std::int32_t start = window_start(groups_[g], work.window_position, block_size_);
    const std::int32_t blocks = groups_[g].pool_blocks;
    const std::int32_t gone = std::min<std::int32_t>((start - state.start[g]) * blocks,
                                                     static_cast<std::int32_t>(table.size()));
    if (gone > 0) {
      for (std::int32_t i = 0; i < gone; ++i) drop(table[static_cast<std::size_t>(i)]);
      table.erase(table.begin(), table.begin() + gone);
      state.start[g] += gone / blocks;
      plan.table_changes.push_back(
          {work.slot, static_cast<std::uint32_t>(g), static_cast<std::uint32_t>(gone), 0, 0});
    }
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    auto& table = state.tables[g];
    const auto blocks = static_cast<std::size_t>(groups_[g].pool_blocks);
    const auto begin = static_cast<std::uint32_t>(plan.new_blocks.size());
    while (table.size() + static_cast<std::size_t>(state.start[g]) * blocks < end * blocks) {
      table.push_back(take(plan));
      plan.new_blocks.push_back(table.back());
    }
    const auto count = static_cast<std::uint32_t>(plan.new_blocks.size()) - begin;
    if (count > 0) {
      plan.table_changes.push_back({work.slot, static_cast<std::uint32_t>(g), 0, begin, count});
    }
  }
}

void block_manager::name_blocks(const naming_command& command, step& plan) {
  const auto& table = slots_[command.slot].tables[0];
  for (std::uint32_t i = 0; i < command.count; ++i) {
    const block_id block = table.at(command.first_block + i);
    plan.named.push_back(block);
    if (!command.keyed) continue;
    block_state& state = blocks_[block.raw()];
    assert(state.references == 1);
    state.findable = true;
    state.named_in = plan.id;
    state.key = plan.keys[command.keys_begin + i];
  }
}

block_manager::slot_state& block_manager::open_slot(std::uint32_t slot) {
  if (slot >= slots_.size()) slots_.resize(slot + 1U);
  slot_state& state = slots_[slot];
  assert(!state.live);
  state.live = true;
  return state;
}

// A block for new content: one that was never used, else the least recently
// used free one, whose old content is forgotten now.
block_id block_manager::take(step& plan) {
  const bool reusable = head_ != nil && !blocks_[head_].findable;
  if (!reusable && static_cast<std::int64_t>(blocks_.size()) < total_.raw()) {
    blocks_.emplace_back().references = 1;
    return block_id{static_cast<std::uint32_t>(blocks_.size() - 1)};
  }
  if (head_ == nil) throw std::logic_error("the plan needs more blocks than are free");
  const std::uint32_t taken = head_;
  unlink(taken);
  block_state& state = blocks_[taken];
  if (state.findable) {
    plan.evicted.push_back({state.key, block_id{taken}});
    ++statistics_.evicted_blocks;
    state.findable = false;
  }
  state.references = 1;
  return block_id{taken};
}

void block_manager::drop(block_id block) {
  block_state& state = blocks_[block.raw()];
  assert(state.references > 0);
  if (--state.references > 0) return;
  if (state.findable) {
    link_back(block.raw());
  } else {
    link_front(block.raw());
  }
}

void block_manager::touch(block_id block) {
  block_state& state = blocks_[block.raw()];
  if (state.references++ == 0) unlink(block.raw());
}

void block_manager::link_back(std::uint32_t block) {
  block_state& state = blocks_[block];
  state.previous = tail_;
  state.next = nil;
  (tail_ == nil ? head_ : blocks_[tail_].next) = block;
  tail_ = block;
  ++listed_;
}

void block_manager::link_front(std::uint32_t block) {
  block_state& state = blocks_[block];
  state.previous = nil;
  state.next = head_;
  (head_ == nil ? tail_ : blocks_[head_].previous) = block;
  head_ = block;
  ++listed_;
}

void block_manager::unlink(std::uint32_t block) {
  block_state& state = blocks_[block];
  (state.previous == nil ? head_ : blocks_[state.previous].next) = state.next;
  (state.next == nil ? tail_ : blocks_[state.next].previous) = state.previous;
  state.previous = nil;
  state.next = nil;
  --listed_;
}

void block_manager::check_integrity() const {
  std::vector<std::uint32_t> counted(blocks_.size());
  for (const slot_state& slot : slots_) {
    for (const auto& table : slot.tables) {
      if (!slot.live && !table.empty()) throw std::logic_error("a released slot holds blocks");
      for (const block_id block : table) ++counted.at(block.raw());
    }
  }
  std::int32_t idle = 0;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (counted[i] != blocks_[i].references) {
      throw std::logic_error(
          "block " + std::to_string(i) + " has " + std::to_string(blocks_[i].references) +
          " references, tables name it " + std::to_string(counted[i]) + " times");
    }
    if (counted[i] == 0) ++idle;
  }
  std::int32_t walked = 0;
  for (std::uint32_t at = head_; at != nil; at = blocks_[at].next) {
    if (blocks_[at].references != 0) throw std::logic_error("a held block is in the free list");
    if (++walked > listed_) throw std::logic_error("the free list has a cycle");
  }
  if (walked != listed_ || idle != listed_) {
    throw std::logic_error("the free list has " + std::to_string(walked) + " blocks, " +
                           std::to_string(idle) + " are idle and " + std::to_string(listed_) +
                           " are counted");
  }
}

}  // namespace octavo
