// Construction and statistics of the scheduler; booking and planning have files
// of their own.
#include "core/scheduler.hpp"

namespace octavo {
namespace {

engine_config validated(engine_config config) {
  validate(config);
  return config;
}

}  // namespace

scheduler::scheduler(engine_config config, decision_log& log, hash128 secret)
    : config_(validated(std::move(config))),
      log_(log),
      hasher_(secret),
      policy_(make_policy(config_.policy)),
      ledger_(config_),
      waiting_(config_.scheduling_policy) {}

bool scheduler::wants_plan() const {
  return plan_wanted_ && in_flight_ <= config_.run_ahead;
}

scheduler_statistics scheduler::statistics() const {
  scheduler_statistics s = totals_;
  s.running = static_cast<std::int64_t>(running_.size());
  s.waiting = static_cast<std::int64_t>(waiting_.size());
  s.waiting_tokens = waiting_.tokens();
  s.blocks_used = ledger_.used();
  s.blocks_total = ledger_.total();
  for (const sequence* q : running_) {
    for (std::size_t g = 0; g < config_.kv_groups.size(); ++g) {
      const std::int32_t left_window = q->account.start[g] * config_.block_size.raw();
      s.kv_tokens +=
          std::int64_t{q->computed_tokens.raw() - left_window} * config_.kv_groups[g].pool_blocks;
    }
  }
  s.kv_tokens -= ledger_.shared_references() * config_.block_size.raw();
  return s;
}

}  // namespace octavo
