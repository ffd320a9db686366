// The moves of one step: see tick.hpp.
#include "core/tick.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace octavo {
namespace {

// A static batch is padded and computed whole, as by engines without a budget.
token_count token_budget(const engine_config& config) {
  return config.policy == policy_kind::static_batch ? token_count::max()
                                                    : config.max_num_batched_tokens;
}

}  // namespace

tick::tick(const engine_config& config_in, block_ledger& ledger_in,
           std::vector<sequence*>& running_in, slot_pool& slots, step& plan,
           decision_record& record)
    : config(config_in),
      ledger(ledger_in),
      running(running_in),
      free_slots(slots),
      budget(token_budget(config_in)),
      plan_(plan),
      record_(record) {
  for (const sequence* s : running) seats_taken_ += 1 + s->forks_wanted;
}

token_count tick::wanted(const sequence& s) const {
  if (s.held_by_batch || s.ends_in_flight()) return token_count{0};
  token_count count = s.remaining_tokens();
  const token_count threshold = config.long_prefill_token_threshold;
  if (threshold > token_count{0}) count = std::min(count, threshold);
  return std::min(count, budget);
}

token_count tick::reservation(const sequence& s, bool worst_case) const {
  if (config.layout == kv_layout::contiguous) return config.max_model_len;
  if (!worst_case) return token_count{0};
  std::int64_t per_block = 0;
  for (const kv_group& group : config.kv_groups) per_block += group.pool_blocks;
  const std::int64_t pool =
      std::int64_t{ledger.total().raw()} / per_block * config.block_size.raw();
  // Only a context that windows have trimmed can be longer than the pool.
  if (s.known_tokens().raw() > pool) return token_count{0};
  return token_count{static_cast<std::int32_t>(std::min<std::int64_t>(s.end_tokens.raw(), pool))};
}

namespace {

// A reservation is never trimmed by the window: it must hold to the end.
token_count window_position(const sequence& s) {
  return s.reserved_tokens > token_count{0} ? token_count{0} : s.computed_tokens;
}

token_count hold_tokens(const sequence& s, token_count count) {
  return std::max(s.computed_tokens + count, s.reserved_tokens);
}

}  // namespace

bool tick::fits(const sequence& s, token_count count) const {
  return ledger.growth(s.account, hold_tokens(s, count), window_position(s)) <= ledger.free();
}

bool tick::outgrows_pool(const sequence& s, token_count count) const {
  return blocks_held(config, hold_tokens(s, count), window_position(s)) > ledger.total();
}

token_count tick::first_tokens(const sequence& s, token_count hit) const {
  const token_count count = s.known_tokens() - hit;
  const token_count threshold = config.long_prefill_token_threshold;
  return threshold > token_count{0} ? std::min(count, threshold) : count;
}

sequence& tick::victim_for(sequence& requester) const {
  sequence* worst = &requester;
  for (sequence* s : running) {
    if (s->reserved_tokens > token_count{0}) continue;
    if (std::pair{s->priority, s->arrival} > std::pair{worst->priority, worst->arrival}) worst = s;
    // Samples of one request: the last one goes first.
    if (s->arrival == worst->arrival && s->sample > worst->sample) worst = s;
  }
  return *worst;
}

void tick::run(sequence& s, token_count count, token_count padding) {
  assert(count > token_count{0} && count + padding <= budget);  // grow() checks that it fits
  const bool decode = s.decodes();
  const bool complete = count == s.remaining_tokens();
  const bool first_token = s.output_tokens + s.pending_tokens == token_count{0};
  sequence_work work = work_of(s);
  work.samples = static_cast<std::uint16_t>(complete ? 1 + (first_token ? s.forks_wanted : 0) : 0);
  work.count = count;
  work.padding = padding;
  work.hold_tokens = hold_tokens(s, count);
  work.decode = decode;
  ledger.grow(s.account, work.hold_tokens, work.window_position);
  plan_.work.push_back(work);
  record_.ran.push_back({name_of(s), count, padding, decode});
  if (!complete) {
    record_.held.push_back(
        {name_of(s), reason::chunked_to_budget, count.raw(), (s.remaining_tokens() - count).raw()});
  }
  s.computed_tokens += count;
  if (complete) ++s.pending_tokens;
  ++s.steps_in_flight;
  budget -= count + padding;
}

void tick::run_padding(sequence& s) {
  sequence_work work = work_of(s);
  work.padding = token_count{1};
  work.hold_tokens = s.reserved_tokens;
  work.decode = true;
  plan_.work.push_back(work);
  record_.ran.push_back({name_of(s), token_count{0}, token_count{1}, true});
  ++s.steps_in_flight;
  --budget;
}

sequence_work tick::work_of(const sequence& s) const {
  sequence_work work;
  work.sequence = s.index;
  work.slot = s.slot;
  work.request = s.id;
  work.sample = s.sample;
  work.first_position = s.computed_tokens;
  work.window_position = window_position(s);
  return work;
}

void tick::refund(sequence& s) {
  const auto work = std::ranges::find(plan_.work, s.index, &sequence_work::sequence);
  if (work == plan_.work.end()) return;
  budget += work->count + work->padding;
  if (work->samples > 0) --s.pending_tokens;
  --s.steps_in_flight;
  record_.ran.erase(record_.ran.begin() + (work - plan_.work.begin()));
  plan_.work.erase(work);
  std::erase_if(record_.held, [&](const held_record& h) { return h.who == name_of(s); });
}

void tick::give_back(sequence& s) {
  ledger.release(s.account);
  plan_.preemptions.push_back({s.slot});
  free_slots.push_back(s.slot);
  seats_taken_ -= 1 + s.forks_wanted;
  running.erase(std::ranges::find(running, &s));
}

void tick::preempt(sequence& victim, const sequence& requester) {
  refund(victim);
  give_back(victim);
  victim.state = sequence_state::waiting;
  victim.computed_tokens = token_count{0};
  victim.reserved_tokens = token_count{0};
  victim.named_blocks = 0;
  ++victim.preemptions;
  preempted.push_back(&victim);
  record_.preempted.push_back({name_of(victim), name_of(requester)});
}

void tick::exhaust(sequence& s) {
  if (s.state == sequence_state::running) give_back(s);
  s.state = sequence_state::waiting;
  exhausted.push_back(&s);
}

void tick::admit(const admission_candidate& candidate, token_count reserved) {
  sequence& s = *candidate.who;
  assert(s.state == sequence_state::waiting && s.account.held() == 0);
  const token_count hit = hit_tokens(candidate, config.block_size);
  s.state = sequence_state::running;
  s.slot = free_slots.take();
  s.computed_tokens = hit;
  s.named_blocks = static_cast<std::int32_t>(candidate.hits.size());
  s.reserved_tokens = reserved;
  ledger.touch(s.account, candidate.hits);
  admission_command command;
  command.sequence = s.index;
  command.slot = s.slot;
  command.request = s.id;
  command.sample = s.sample;
  command.hits_begin = static_cast<std::uint32_t>(plan_.hits.size());
  command.hits_count = static_cast<std::uint32_t>(candidate.hits.size());
  command.query_tokens = s.known_tokens();
  command.resumed = s.preemptions > 0;
  plan_.hits.insert(plan_.hits.end(), candidate.hits.begin(), candidate.hits.end());
  plan_.admissions.push_back(command);
  if (s.cached_tokens < token_count{0}) {
    s.cached_tokens = hit;
    s.admitted_at = now;
  }
  reason why = hit > token_count{0} ? reason::prefix_hit : reason::admitted;
  if (command.resumed) why = reason::resumed;
  record_.admitted.push_back({name_of(s), why, hit});
  running.push_back(&s);
  seats_taken_ += 1 + s.forks_wanted;
  admitted.push_back(&s);
}

void tick::hold(const sequence& s, reason why, std::int64_t a, std::int64_t b) {
  record_.held.push_back({name_of(s), why, a, b});
}

}  // namespace octavo
