// The scheduler's plans: forks, the policy's two halves with the question to the
// prefix cache between them, and what a decided plan needs to be carried out.
#include <algorithm>
#include <cassert>

#include "core/scheduler.hpp"

namespace octavo {
namespace {

constexpr std::size_t max_untold_changes = 4096;
constexpr std::int32_t least_candidates = 16;

}  // namespace

bool scheduler::begin_plan(step& plan, match_batch& question) {
  assert(wants_plan());
  plan_wanted_ = false;
  plan.id = step_id{next_step_};
  plan.planned_at = now_;
  plan.releases.swap(pending_releases_);
  pending_releases_.clear();
  start_forks(plan);
  tick_.emplace(config_, ledger_, running_, slots_, plan, record_);
  tick& t = *tick_;
  t.now = now_;
  t.draining = draining_;
  t.waiting = waiting_.size();
  t.candidates_max = candidates_worth_a_look();
  const std::int32_t wanted = policy_->begin(t);
  return collect_candidates(wanted, question);
}

// A child of a computed prompt shares the full blocks and copies the partial
// one. Where that is impossible now, it waits like one that was preempted: its
// prompt and first token are computed again, for itself.
void scheduler::start_forks(step& plan) {
  for (const pending_fork& fork : pending_forks_) {
    const sequence& parent = sequences_[fork.parent];
    sequence& child = sequences_[fork.child];
    const std::int32_t shared = child.prompt_tokens.raw() / config_.block_size.raw();
    const bool copies = child.prompt_tokens.raw() % config_.block_size.raw() != 0;
    const bool can_share = parent.state == sequence_state::running && parent.id == child.id &&
                           parent.account.named.size() >= static_cast<std::size_t>(shared) &&
                           block_count{copies ? 1 : 0} <= ledger_.free();
    if (!can_share) {
      waiting_.insert(child);
      continue;
    }
    child.state = sequence_state::running;
    child.slot = slots_.take();
    child.computed_tokens = child.prompt_tokens;
    ++child.steps_in_flight;  // the copy is part of the step
    child.named_blocks = shared;
    ledger_.share(parent.account, child.account, shared);
    ledger_.grow(child.account, child.prompt_tokens, token_count{0});
    running_.push_back(&child);
    plan.forks.push_back({parent.slot, child.slot, shared, copies, child.index});
  }
  pending_forks_.clear();
}

bool scheduler::may_be_cached(const sequence& s) const {
  if (!config_.enable_prefix_caching) return false;
  // Content that only this sequence can have is cached only if it ran before.
  return s.preemptions > 0 || s.sample > 0 || !requests_[s.request].spec.keys.empty();
}

// Asking about a candidate costs a lookup for each of its blocks. A head that
// lacked memory gets in only where memory has grown or its prefix has become
// known, so it is asked about alone until then; and of the others, few more than
// were let in before. Both are remembered of recorded plans alone.
std::int32_t scheduler::candidates_worth_a_look() const {
  if (waiting_.empty()) return 0;
  const sequence& head = sequences_[waiting_.begin()->sequence];
  const bool stuck = blocked_ && blocked_->who == name_of(head) && ledger_.free() <= blocked_->free;
  return stuck ? 1 : least_candidates + 2 * admitted_last_;
}

void scheduler::remember_for_next_look(const tick& t) {
  admitted_last_ = static_cast<std::int32_t>(t.admitted.size());
  blocked_.reset();
  for (const held_record& held : record_.held) {
    if (held.why != reason::no_free_blocks && held.why != reason::watermark_hold) continue;
    blocked_ = blocked_head{held.who, ledger_.free()};
  }
}

bool scheduler::collect_candidates(std::int32_t wanted, match_batch& question) {
  candidates_.clear();
  tick_->oldest_submitted_at = now_;
  // Tokens that those collected take at least: who is beyond the budget even so
  // cannot get in and need not be asked about.
  std::int64_t tokens = 0;
  for (const waiting_queue::entry& entry : waiting_) {
    if (std::ssize(candidates_) >= wanted || tokens >= tick_->budget.raw()) break;
    sequence& s = sequences_[entry.sequence];
    tokens += may_be_cached(s) ? 1 : tick_->first_tokens(s, token_count{0}).raw();
    tick_->oldest_submitted_at = std::min(tick_->oldest_submitted_at, s.submitted_at);
    candidates_.push_back(&s);
    if (may_be_cached(s)) add_question(s, question);
  }
  // Without a question for long, the cache is told all the same.
  if (question.candidates.empty() && changes_.size() < max_untold_changes) return false;
  question.booked = booked_;
  question.changes.swap(changes_);
  for (const token_id token : change_tokens_) question.tokens.push_back(token);
  // Candidates' own tokens stand before those of the changes.
  const auto shift = static_cast<std::uint32_t>(question.tokens.size() - change_tokens_.size());
  for (auto& change : question.changes) change.tokens_begin += shift;
  changes_.clear();
  change_tokens_.clear();
  return true;
}

void scheduler::add_question(sequence& s, match_batch& question) {
  // At least one token must run to yield logits, so the last is never a hit.
  const std::int32_t blocks = (s.known_tokens().raw() - 1) / config_.block_size.raw();
  if (blocks <= 0) return;
  match_batch::candidate candidate;
  candidate.sequence = s.index;
  candidate.keys_begin = static_cast<std::uint32_t>(question.keys.size());
  candidate.keys_count = static_cast<std::uint32_t>(blocks);
  for (std::int32_t i = 0; i < blocks; ++i) {
    question.keys.push_back(key_of(s, static_cast<std::uint32_t>(i)));
  }
  if (const auto& prompt = requests_[s.request].spec.prompt; prompt != nullptr) {
    candidate.with_tokens = true;
    candidate.tokens_begin = static_cast<std::uint32_t>(question.tokens.size());
    const auto count = static_cast<std::size_t>(blocks * config_.block_size.raw());
    for (std::size_t k = 0; k < count; ++k) {
      question.tokens.push_back(k < prompt->size() ? (*prompt)[k] : s.output[k - prompt->size()]);
    }
  }
  question.candidates.push_back(candidate);
}

block_key scheduler::key_of(const sequence& s, std::uint32_t block) const {
  const auto prompt_blocks =
      static_cast<std::uint32_t>(s.prompt_tokens.raw() / config_.block_size.raw());
  const auto& keys = requests_[s.request].spec.keys;
  const bool of_prompt = block < prompt_blocks;
  if (block < keys.size() && (of_prompt || s.sample == 0)) return keys[block];
  if (!of_prompt && block - prompt_blocks < s.output_keys.size()) {
    return s.output_keys[block - prompt_blocks];
  }
  return private_key(s.id, of_prompt ? 0U : s.sample, block);
}

std::span<const admission_candidate> scheduler::answered(const match_batch* answer) {
  admission_.clear();
  std::size_t at = 0;
  for (sequence* s : candidates_) {
    admission_candidate candidate{s, {}};
    if (answer != nullptr && at < answer->candidates.size() &&
        answer->candidates[at].sequence == s->index) {
      const auto& found = answer->candidates[at++];
      candidate.hits = std::span{answer->hits}.subspan(found.hits_begin, found.hits_count);
    }
    admission_.push_back(candidate);
  }
  return admission_;
}

bool scheduler::finish_plan(step& plan, const match_batch* answer) {
  tick& t = *tick_;
  policy_->finish(t, answered(answer));
  settle_waiting(t);
  wake_ = t.wake;
  plan.expected_free = ledger_.free();
  fill_tokens(plan);
  name_full_blocks(plan);
  const bool commits = !plan.empty();
  if (commits) {
    ++next_step_;
    ++in_flight_;
    if (!plan.work.empty()) ++totals_.steps;
    plan_wanted_ = config_.run_ahead > 0;
  } else if (!t.exhausted.empty()) {
    plan_wanted_ = true;  // those behind may go on
  }
  if (commits || !record_.inputs.empty() || !record_.finished.empty()) {
    record_.step = plan.id;
    record_.now = now_;
    record_.budget = config_.max_num_batched_tokens;
    record_.free = ledger_.free();
    record_.used = ledger_.used();
    remember_for_next_look(t);
    log_.commit(record_);
    for (decision_observer* observer : observers_) observer->on_record(record_);
  }
  record_.clear();
  tick_.reset();
  sweep_ended();
  return commits;
}

// The queue after the policy's moves, and why its head and the rest wait.
void scheduler::settle_waiting(const tick& t) {
  for (sequence* s : t.admitted) waiting_.erase(*s);
  for (sequence* s : t.preempted) waiting_.insert(*s);
  for (sequence* s : t.exhausted) finish(*s, reason::finished_kv_exhausted);
  totals_.preemptions += std::ssize(t.preempted);
  if (waiting_.empty()) return;
  const sequence& head = sequences_[waiting_.begin()->sequence];
  const bool head_explained = std::ranges::any_of(record_.held, [&](const held_record& held) {
    return held.who == name_of(head) && held.why != reason::chunked_to_budget;
  });
  if (!head_explained && t.closed) {
    record_.held.push_back({name_of(head), t.closed->why, t.closed->a, t.closed->b});
  } else if (!head_explained && t.preempted_any()) {
    record_.held.push_back({name_of(head), reason::no_free_blocks, 1, ledger_.free().raw()});
  } else if (!head_explained && !t.admitted.empty() && std::ssize(t.admitted) >= t.candidates_max) {
    record_.held.push_back({name_of(head), reason::behind_head,
                            static_cast<std::int64_t>(t.admitted.back()->id.raw()), 0});
  } else if (!head_explained) {
    // All who were considered got in; no seat or no budget was left for more.
    const bool full = t.seats_free() <= 0;
    record_.held.push_back({name_of(head), full ? reason::batch_full : reason::no_budget,
                            full ? t.seats_taken() : 0, full ? config_.max_num_seqs : 0});
  }
  record_.behind = static_cast<std::int64_t>(waiting_.size()) - 1;
}

// Token ids to compute, where they are known; -1 stands for one that a step in
// flight is about to sample: the executor has it.
void scheduler::fill_tokens(step& plan) const {
  for (admission_command& command : plan.admissions) {
    const sequence& s = sequences_[command.sequence];
    const request_spec& spec = requests_[s.request].spec;
    if (spec.prompt == nullptr) continue;
    command.tokens_begin = static_cast<std::uint32_t>(plan.admitted_tokens.size());
    command.prompt_tokens = s.prompt_tokens;
    command.end_tokens = s.end_tokens;
    command.sampling = spec.sampling;
    plan.admitted_tokens.insert(plan.admitted_tokens.end(), spec.prompt->begin(),
                                spec.prompt->end());
    plan.admitted_tokens.insert(plan.admitted_tokens.end(), s.output.begin(), s.output.end());
  }
  for (sequence_work& work : plan.work) {
    const sequence& s = sequences_[work.sequence];
    const auto& prompt = requests_[s.request].spec.prompt;
    if (prompt == nullptr) continue;
    work.tokens_begin = static_cast<std::uint32_t>(plan.tokens.size());
    for (std::int32_t i = 0; i < work.count.raw(); ++i) {
      const auto position = static_cast<std::size_t>(work.first_position.raw() + i);
      const std::size_t generated = position - prompt->size();
      if (position < prompt->size()) {
        plan.tokens.push_back((*prompt)[position]);
      } else {
        plan.tokens.push_back(generated < s.output.size() ? s.output[generated] : -1);
      }
    }
  }
}

// Blocks that are full after this step and whose tokens are all booked get
// names: to be found by key, or to be shared with samples that will fork.
void scheduler::name_full_blocks(step& plan) {
  for (const sequence_work& work : plan.work) {
    sequence& s = sequences_[work.sequence];
    const bool forks = s.forks_wanted > 0;
    if (!config_.enable_prefix_caching && !forks) continue;
    token_count known = std::min(s.computed_tokens, s.prompt_tokens + s.output_tokens);
    if (!config_.enable_prefix_caching) known = std::min(known, s.prompt_tokens);
    const std::int32_t full = known.raw() / config_.block_size.raw();
    if (full <= s.named_blocks) continue;
    naming_command command;
    command.sequence = s.index;
    command.slot = s.slot;
    command.first_block = static_cast<std::uint32_t>(s.named_blocks);
    command.count = static_cast<std::uint32_t>(full - s.named_blocks);
    command.keyed = config_.enable_prefix_caching;
    command.keys_begin = static_cast<std::uint32_t>(plan.keys.size());
    for (std::int32_t i = s.named_blocks; command.keyed && i < full; ++i) {
      plan.keys.push_back(key_of(s, static_cast<std::uint32_t>(i)));
    }
    s.named_blocks = full;
    plan.namings.push_back(command);
  }
}

}  // namespace octavo
