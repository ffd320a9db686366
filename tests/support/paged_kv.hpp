// A model of an executor's KV memory for tests. It keeps block tables from a
// step's commands alone and remembers for each place which text was written
// there, so a step that would read another text's KV is caught: a wrong hit, a
// fork that shares too much, a block reused too early.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/block_key.hpp"
#include "core/config.hpp"
#include "core/step.hpp"

namespace octavo::test {

/// A request as a test's world knows it: the text it will have.
struct fake_request {
  std::uint64_t id = 0;
  std::int32_t prompt = 1;
  /// Tokens after which the model ends the text.
  std::int32_t output = 1 << 20;
  std::int32_t max_tokens = 16;
  std::int32_t n = 1;
  std::int32_t priority = 0;
  /// The first `shared` tokens of the prompt are the same in all of a family.
  std::uint64_t family = 0;
  std::int32_t shared = 0;
  /// The KV depends on the adapter; the salt only isolates.
  std::string adapter = {};
  std::string salt = {};

  friend bool operator==(const fake_request&, const fake_request&) = default;
};

/// A well-mixed number for a few coordinates.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b = 0,
                                          std::uint64_t c = 0) {
  std::uint64_t x =
      a * 0x9e3779b97f4a7c15ULL ^ (b + 1) * 0xbf58476d1ce4e5b9ULL ^ (c + 1) * 0x94d049bb133111ebULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// The token at `position` of one sample's text, prompt included. Texts depend
/// on nothing else, so whatever the schedule, they must come out the same.
[[nodiscard]] inline token_id token_at(const fake_request& r, std::uint32_t sample,
                                       std::int32_t position) {
  const auto at = static_cast<std::uint64_t>(position);
  if (position < r.shared) return static_cast<token_id>(mix(1, r.family, at) & 0xffff);
  if (position < r.prompt) return static_cast<token_id>(mix(2, r.id, at) & 0xffff);
  return static_cast<token_id>(mix(3 + sample, r.id, at) & 0xffff);
}

class paged_kv {
 public:
  explicit paged_kv(const engine_config& config)
      : config_(config), width_(static_cast<std::size_t>(config.block_size.raw())) {}

  void add(const fake_request& r) { requests_.emplace(r.id, r); }
  [[nodiscard]] const fake_request& request(request_id id) const { return requests_.at(id.raw()); }

  /// Carries a step out: reads what attention would read, writes what is
  /// computed. Throws std::logic_error where it would read the wrong KV.
  void execute(const step& plan) {
    const bool failed = plan.result.status == step_status::failed;
    for (const auto& release : plan.releases) slot(release.slot) = {};
    std::size_t next_block = 0;
    for (const auto& fork : plan.forks) {
      start_fork(fork, plan, next_block);
      slot(fork.child_slot).at(0).is_void = failed;
    }
    for (const auto& preemption : plan.preemptions) slot(preemption.slot) = {};
    for (const auto& admission : plan.admissions) admit(admission, plan);
    for (const auto& copy : plan.copies) {
      content(copy.to) = failed ? std::vector<std::uint64_t>(width_) : content(copy.from);
    }
    for (const auto& work : plan.work) grow(work, plan, next_block);
    if (next_block != plan.new_blocks.size()) throw std::logic_error("blocks nobody asked for");
    if (failed) failed_step_ = plan.id;
    for (const auto& work : plan.work) {
      if (!is_void(work, plan, failed)) check_context(work);
    }
    for (const auto& work : plan.work) write(work, is_void(work, plan, failed));
  }

 private:
  struct table {
    std::int32_t start = 0;
    std::vector<block_id> blocks;
    bool is_void = false;  ///< what a fork copied here was never copied
    [[nodiscard]] block_id at(std::int32_t index) const {
      if (index < start) throw std::logic_error("a block out of the window is read");
      return blocks.at(static_cast<std::size_t>(index - start));
    }
  };
  using slot_tables = std::vector<table>;
  struct text {
    std::vector<std::uint64_t> prefix;  ///< prefix[p]: hash of tokens 0..p
  };

  slot_tables& slot(std::uint32_t number) {
    if (number >= slots_.size()) slots_.resize(number + 1U);
    return slots_[number];
  }
  std::vector<std::uint64_t>& content(block_id block) {
    if (block.raw() >= content_.size()) content_.resize(block.raw() + 1U);
    auto& places = content_[block.raw()];
    places.resize(width_);
    return places;
  }

  // Whether what the work computes is worth nothing: its step failed, or was
  // planned while one that failed was still in flight.
  bool is_void(const sequence_work& work, const step& plan, bool failed) {
    const std::pair who{work.request.raw(), work.sample};
    if (failed || slot(work.slot).at(0).is_void) void_.insert(who);
    if (!void_.contains(who)) return false;
    if (plan.id.raw() > failed_step_.raw() + 1) {
      throw std::logic_error("request " + std::to_string(work.request.raw()) +
                             " runs on after its step has failed");
    }
    return true;
  }

  void admit(const admission_command& command, const step& plan) {
    slot_tables& tables = slot(command.slot);
    if (!tables.empty()) throw std::logic_error("a slot is given out twice");
    tables.resize(config_.kv_groups.size());
    for (std::uint32_t i = 0; i < command.hits_count; ++i) {
      tables[0].blocks.push_back(plan.hits.at(command.hits_begin + i));
    }
  }

  void start_fork(const fork_command& command, const step& plan, std::size_t& next_block) {
    const slot_tables parent = slot(command.parent_slot);
    slot_tables& child = slot(command.child_slot);
    if (!child.empty()) throw std::logic_error("a slot is given out twice");
    child.resize(config_.kv_groups.size());
    for (std::int32_t i = 0; i < command.shared_blocks; ++i) {
      child[0].blocks.push_back(parent.at(0).at(i));
    }
    if (command.copy_last) child[0].blocks.push_back(plan.new_blocks.at(next_block++));
  }

  void grow(const sequence_work& work, const step& plan, std::size_t& next_block) {
    slot_tables& tables = slot(work.slot);
    const std::int32_t end = blocks_for(work.hold_tokens, config_.block_size).raw();
    for (std::size_t g = 0; g < config_.kv_groups.size(); ++g) {
      table& t = tables.at(g);
      const std::int32_t start =
          window_start(config_.kv_groups[g], work.window_position, config_.block_size);
      while (t.start < start && !t.blocks.empty()) {
        t.blocks.erase(t.blocks.begin());
        ++t.start;
      }
      while (t.start + static_cast<std::int32_t>(t.blocks.size()) < end) {
        t.blocks.push_back(plan.new_blocks.at(next_block++));
      }
    }
  }

  // What position `p` of a sample's text must find written for itself.
  std::uint64_t written(request_id id, std::uint16_t sample, std::int32_t p, std::size_t group) {
    text& t = texts_[{id.raw(), sample}];
    const fake_request& r = request(id);
    while (static_cast<std::int32_t>(t.prefix.size()) <= p) {
      const auto next = static_cast<std::int32_t>(t.prefix.size());
      const std::uint64_t before =
          t.prefix.empty() ? std::hash<std::string>{}(r.adapter) : t.prefix.back();
      t.prefix.push_back(mix(before, static_cast<std::uint64_t>(token_at(r, sample, next))));
    }
    return t.prefix[static_cast<std::size_t>(p)] + group + 1;
  }

  void check_context(const sequence_work& work) {
    if (work.count == token_count{0}) return;
    for (std::size_t g = 0; g < config_.kv_groups.size(); ++g) {
      const std::int32_t window = config_.kv_groups[g].window.raw();
      const std::int32_t first = work.first_position.raw();
      std::int32_t p = window == 0 ? 0 : std::max(0, first + 1 - window);
      for (; p < first; ++p) {
        const block_id block = slot(work.slot).at(g).at(p / config_.block_size.raw());
        const auto place = static_cast<std::size_t>(p % config_.block_size.raw());
        if (content(block)[place] != written(work.request, work.sample, p, g)) {
          throw std::logic_error("request " + std::to_string(work.request.raw()) + " sample " +
                                 std::to_string(work.sample) + " reads the KV of another text" +
                                 " at position " + std::to_string(p) + ", block " +
                                 std::to_string(block.raw()));
        }
      }
    }
  }

  void write(const sequence_work& work, bool failed) {
    for (std::size_t g = 0; g < config_.kv_groups.size(); ++g) {
      for (std::int32_t i = 0; i < work.count.raw(); ++i) {
        const std::int32_t p = work.first_position.raw() + i;
        const block_id block = slot(work.slot).at(g).at(p / config_.block_size.raw());
        const auto place = static_cast<std::size_t>(p % config_.block_size.raw());
        content(block)[place] = failed ? 0 : written(work.request, work.sample, p, g);
      }
    }
  }

  engine_config config_;
  std::size_t width_;
  std::map<std::uint64_t, fake_request> requests_;
  std::map<std::pair<std::uint64_t, std::uint16_t>, text> texts_;
  /// Samples that a failed step had; they have ended.
  std::set<std::pair<std::uint64_t, std::uint16_t>> void_;
  step_id failed_step_;
  std::vector<slot_tables> slots_;
  std::vector<std::vector<std::uint64_t>> content_;
};

}  // namespace octavo::test
