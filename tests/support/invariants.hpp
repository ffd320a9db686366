// What must hold after every step, whatever the requests, the policy and the
// world do. Scenario tests and the fuzzer call these after each step; a breach
// throws std::logic_error that names it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>

#include "core/decision_record.hpp"
#include "core/ring.hpp"

namespace octavo::test {

class invariants final : public decision_observer {
 public:
  explicit invariants(ring& observed) : ring_(observed), config_(observed.scheduler.config()) {
    observed.scheduler.observe(*this);
  }

  void on_submit(request_id id, token_count prompt) {
    ++submitted_[id.raw()];
    prompts_[id.raw()] = prompt;
  }

  void on_record(const decision_record& record) override {
    std::int64_t tokens = 0;
    for (const ran_record& ran : record.ran) tokens += ran.tokens.raw() + ran.padding.raw();
    if (config_.policy != policy_kind::static_batch) {
      require(tokens <= config_.max_num_batched_tokens.raw(), "tokens over the budget", tokens);
    }
    std::set<sequence_name> once;
    for (const ran_record& ran : record.ran) {
      require(once.insert(ran.who).second, "a sequence runs twice in one step", tokens);
      require(ran.tokens.raw() + ran.padding.raw() > 0, "a sequence runs with no token", 0);
    }
    for (const preempted_record& p : record.preempted) {
      require(!once.contains(p.victim), "a victim runs", static_cast<std::int64_t>(tokens));
    }
    require(std::ssize(record.ran) <= config_.max_num_seqs, "more sequences run than may",
            std::ssize(record.ran));
    require(record.free + record.used == config_.num_blocks, "free + used is not the pool",
            record.free.raw());
    require(record.free >= block_count{0}, "negative free blocks", record.free.raw());
  }

  /// After a plan was committed.
  void on_plan(const step& plan) {
    require(ring_.blocks.free() == plan.expected_free, "the ledger and the block manager differ",
            ring_.blocks.free().raw());
    for (const naming_command& naming : plan.namings) {
      const auto work = std::ranges::find(plan.work, naming.sequence, &sequence_work::sequence);
      require(work != plan.work.end(), "a block is named without work", naming.sequence);
      const std::int64_t end =
          std::int64_t{naming.first_block + naming.count} * config_.block_size.raw();
      require(end <= work->first_position.raw() + work->count.raw(), "a named block is not full",
              end);
    }
    // Plans without work only give back; they cannot go on for ever.
    bare_plans_ = plan.work.empty() ? bare_plans_ + 1 : 0;
    require(bare_plans_ <= 1000, "plans without work do not end", bare_plans_);
    if (config_.num_blocks <= block_count{128}) ring_.blocks.check_integrity();
    require(static_cast<std::int64_t>(ring_.prefixes.size()) <= config_.num_blocks.raw(),
            "more entries in the prefix index than blocks", 0);
  }

  /// When the engine has been asked for plans until it wanted no more.
  void on_rest() {
    const auto now = ring_.scheduler.statistics();
    if (ring_.scheduler.steps_in_flight() == 0 && !ring_.scheduler.idle()) {
      require(ring_.scheduler.wake().has_value(), "requests wait and nothing will happen",
              now.waiting);
    }
    require(now.running <= config_.max_num_seqs, "running sequences over the cap", now.running);
    require(now.kv_tokens >= 0 &&
                now.kv_tokens <= std::int64_t{now.blocks_used.raw()} * config_.block_size.raw(),
            "KV tokens out of 0 .. used blocks", now.kv_tokens);
    check_monotone(now);
    const cache_statistics& cache = ring_.blocks.statistics();
    require(cache.hit_tokens <= cache.query_tokens, "more hits than queries", cache.hit_tokens);
    require(cache.resumed_hit_tokens <= cache.resumed_query_tokens, "more hits than queries",
            cache.resumed_hit_tokens);
  }

  void on_finish(const finish_event& event) {
    const std::int64_t id = static_cast<std::int64_t>(event.request.raw());
    const auto found = submitted_.find(event.request.raw());
    require(found != submitted_.end() && found->second > 0, "an end without a beginning", id);
    require(is_finish(event.why), "an end without a reason", id);
    if (event.request_done) --found->second;
    const bool trimmed = std::ranges::any_of(
        config_.kv_groups, [](const kv_group& g) { return g.window > token_count{0}; });
    if (!trimmed && event.why == reason::finished_kv_exhausted) {
      const token_count known = prompts_[event.request.raw()] + event.output_tokens;
      require(blocks_held(config_, known, token_count{0}) > config_.num_blocks,
              "exhausted although it fits", known.raw());
    }
    if (!trimmed) {
      require(event.preemptions <= std::max(1, config_.max_preemptions), "preempted too often",
              event.preemptions);
    }
  }

  /// When all work is done: everything has ended once and nothing is held.
  void on_end() {
    require(ring_.scheduler.idle(), "the engine is not idle", 0);
    for (const auto& [id, count] : submitted_) {
      require(count == 0, "a request that did not end once", static_cast<std::int64_t>(id));
    }
    const auto now = ring_.scheduler.statistics();
    require(now.completed + now.rejected + now.cancelled + now.failed == now.submitted,
            "ends do not add up", now.submitted);
    require(now.running == 0 && now.waiting == 0 && now.waiting_tokens == 0, "somebody is left",
            now.waiting);
    require(now.blocks_used == block_count{0}, "blocks are held by nobody", now.blocks_used.raw());
    require(ring_.blocks.free() == ring_.blocks.total(), "blocks leak", ring_.blocks.free().raw());
    require(now.kv_tokens == 0, "KV tokens are held by nobody", now.kv_tokens);
    ring_.blocks.check_integrity();
  }

 private:
  static void require(bool ok, const char* what, std::int64_t number) {
    if (!ok) throw std::logic_error(std::string{what} + ": " + std::to_string(number));
  }

  void check_monotone(const scheduler_statistics& now) {
    const auto rises = [&](std::int64_t scheduler_statistics::*counter, const char* name) {
      require(now.*counter >= last_.*counter, name, now.*counter);
    };
    rises(&scheduler_statistics::submitted, "submitted fell");
    rises(&scheduler_statistics::completed, "completed fell");
    rises(&scheduler_statistics::rejected, "rejected fell");
    rises(&scheduler_statistics::cancelled, "cancelled fell");
    rises(&scheduler_statistics::failed, "failed fell");
    rises(&scheduler_statistics::preemptions, "preemptions fell");
    rises(&scheduler_statistics::steps, "steps fell");
    rises(&scheduler_statistics::generated_tokens, "generated tokens fell");
    rises(&scheduler_statistics::wasted_tokens, "wasted tokens fell");
    last_ = now;
  }

  ring& ring_;
  const engine_config& config_;
  std::map<std::uint64_t, std::int32_t> submitted_;
  std::map<std::uint64_t, token_count> prompts_;
  scheduler_statistics last_;
  std::int64_t bare_plans_ = 0;
};

}  // namespace octavo::test
