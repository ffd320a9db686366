// The scheduler's inputs: what each does to requests, sequences and blocks.
#include <algorithm>
#include <cassert>

#include "core/scheduler.hpp"

namespace octavo {

void scheduler::advance_clock(micros stamp) {
  now_ = std::max(now_, stamp);
}

void scheduler::input(input_kind kind, micros stamp, request_id id, token_count prompt,
                      token_count limit, step_id of) {
  advance_clock(stamp);
  record_.inputs.push_back({kind, stamp, id, prompt, limit, of});
  plan_wanted_ = true;
  wake_.reset();
}

void scheduler::on_drain(micros stamp) {
  input(input_kind::drain, stamp);
  log_.add_drain(stamp);
  draining_ = true;
}

void scheduler::on_wake(micros stamp) {
  input(input_kind::wake, stamp);
  log_.add_wake(stamp);
}

// ---- submit and cancel

std::optional<finished_record> scheduler::refuse(const request_spec& spec) const {
  const auto refused = [&](reason why, std::int64_t a, std::int64_t b) {
    return finished_record{{spec.id, 0}, why, a, b};
  };
  if (spec.prompt_tokens < token_count{1} || spec.max_tokens < token_count{1} || spec.n < 1 ||
      spec.n > std::min(config_.max_num_samples, config_.max_num_seqs) ||
      request_by_id_.contains(spec.id.raw())) {
    return refused(reason::rejected_invalid, spec.n, config_.max_num_samples);
  }
  if (draining_) return refused(reason::rejected_draining, 0, 0);
  const std::int64_t total = std::int64_t{spec.prompt_tokens.raw()} + spec.max_tokens.raw();
  if (total > config_.max_model_len.raw()) {
    return refused(reason::rejected_too_long, total, config_.max_model_len.raw());
  }
  const block_count least = blocks_to_start(spec);
  if (least > config_.num_blocks) {
    return refused(reason::rejected_never_fits, least.raw(), config_.num_blocks.raw());
  }
  const auto queued = static_cast<std::int64_t>(waiting_.size());
  if (config_.max_num_queued_reqs > 0 && queued >= config_.max_num_queued_reqs) {
    return refused(reason::rejected_queue_full, queued, config_.max_num_queued_reqs);
  }
  const std::int64_t queued_tokens = waiting_.tokens() + spec.prompt_tokens.raw();
  if (config_.max_num_queued_tokens > 0 && queued_tokens > config_.max_num_queued_tokens) {
    return refused(reason::rejected_queue_full, queued_tokens, config_.max_num_queued_tokens);
  }
  return std::nullopt;
}

// Blocks that the pool must have for the prompt and one token: with fewer, a
// request would wait for ever.
block_count scheduler::blocks_to_start(const request_spec& spec) const {
  const bool reserves =
      config_.policy == policy_kind::reserve || config_.policy == policy_kind::static_batch;
  if (config_.layout == kv_layout::contiguous) {
    return blocks_held(config_, config_.max_model_len, token_count{0});
  }
  const token_count tokens = spec.prompt_tokens + token_count{1};
  if (reserves) return blocks_held(config_, tokens, token_count{0});
  token_count chunk = spec.prompt_tokens;
  const token_count threshold = config_.long_prefill_token_threshold;
  if (threshold > token_count{0}) chunk = std::min(chunk, threshold);
  if (config_.enable_chunked_prefill) chunk = std::min(chunk, config_.max_num_batched_tokens);
  return blocks_peak(config_, tokens, chunk);
}

bool scheduler::shares_by_fork(const request_spec& spec) const {
  const bool grows =
      config_.policy == policy_kind::continuous || config_.policy == policy_kind::prefill_first;
  return spec.n > 1 && grows && config_.layout == kv_layout::paged &&
         config_.kv_groups == std::vector{kv_group{}};
}

void scheduler::on_submit(request_spec spec, micros stamp) {
  input(input_kind::submit, stamp, spec.id, spec.prompt_tokens, spec.max_tokens);
  log_.add_submit(spec, stamp);
  ++totals_.submitted;
  if (const auto refused = refuse(spec)) {
    record_.finished.push_back(*refused);
    count_end(refused->why);
    finish_event event{spec.id,         spec.sink,  0,          true,
                       refused->why,    refused->a, refused->b, {},
                       token_count{-1}, 0,          now_,       {}};
    events_.finishes.push_back(event);
    return;
  }
  if (spec.announce) events_.accepted.push_back({spec.id, spec.sink});
  std::uint32_t index = static_cast<std::uint32_t>(requests_.size());
  if (free_requests_.empty()) {
    requests_.emplace_back();
  } else {
    index = free_requests_.back();
    free_requests_.pop_back();
  }
  request_by_id_.emplace(spec.id.raw(), index);
  ++requests_alive_;
  const bool forks = shares_by_fork(spec);
  const std::int32_t samples = spec.n;
  request_state& request = requests_[index];
  request.spec = std::move(spec);
  request.arrival = next_arrival_++;
  request.alive = 0;
  request.kept = 0;
  request.sequences.clear();
  for (std::int32_t k = 0; k < (forks ? 1 : samples); ++k) {
    sequence& s = add_sequence(index, static_cast<std::uint16_t>(k));
    s.forks_wanted = forks ? samples - 1 : 0;
    waiting_.insert(s);
  }
}

sequence& scheduler::add_sequence(std::uint32_t request, std::uint16_t sample) {
  std::uint32_t index = static_cast<std::uint32_t>(sequences_.size());
  if (free_sequences_.empty()) {
    sequences_.emplace_back();
  } else {
    index = free_sequences_.back();
    free_sequences_.pop_back();
  }
  request_state& owner = requests_[request];
  sequence& s = sequences_[index];
  s = sequence{};
  s.id = owner.spec.id;
  s.request = request;
  s.index = index;
  s.sample = sample;
  s.prompt_tokens = owner.spec.prompt_tokens;
  s.end_tokens = owner.spec.prompt_tokens + owner.spec.max_tokens;
  s.priority = owner.spec.priority;
  s.arrival = owner.arrival;
  s.submitted_at = now_;
  owner.sequences.push_back(index);
  ++owner.alive;
  ++owner.kept;
  return s;
}

sequence& scheduler::add_child(const sequence& parent, std::uint16_t sample) {
  const std::uint32_t parent_index = parent.index;
  sequence& child = add_sequence(parent.request, sample);
  const sequence& source = sequences_[parent_index];
  child.submitted_at = source.submitted_at;
  child.admitted_at = source.admitted_at;
  child.cached_tokens = source.cached_tokens;
  pending_forks_.push_back({parent_index, child.index});
  return child;
}

void scheduler::on_cancel(request_id id, micros stamp) {
  input(input_kind::cancel, stamp, id);
  log_.add_cancel(id, stamp);
  const auto found = request_by_id_.find(id.raw());
  if (found == request_by_id_.end()) return;  // it ended before: nothing to cancel
  const std::vector<std::uint32_t> members = requests_[found->second].sequences;
  for (const std::uint32_t index : members) {
    sequence& s = sequences_[index];
    if (s.state != sequence_state::finished && !s.held_by_batch) {
      finish(s, reason::finished_cancelled);
    }
  }
  end_static_batch_if_done();
  sweep_ended();
}

// ---- results

void scheduler::on_result(step& done, micros stamp) {
  input(input_kind::result, stamp, {}, {}, {}, done.id);
  key_output_blocks(done);
  log_.add_result(done, stamp);
  assert(in_flight_ > 0 && done.id > booked_);
  --in_flight_;
  booked_ = done.id;
  // A block is evicted before it gets a new name, which may be the old one.
  for (const keyed_block& entry : done.evicted) changes_.push_back({entry, 0, false, true});
  const bool failed = done.result.status == step_status::failed;
  if (failed) fail_all(done);
  book_namings(done);
  for (const fork_command& fork : done.forks) --sequences_[fork.child].steps_in_flight;
  result_cursor next;
  for (std::uint32_t i = 0; i < done.work.size(); ++i) book_work(done, i, next);
  end_static_batch_if_done();
  sweep_ended();
}

// Generated tokens complete blocks whose keys only now can be known. They are an
// input like the finishes are: a replay, which has no tokens, reads them from the
// log.
void scheduler::key_output_blocks(step& done) const {
  step_result& result = done.result;
  if (!config_.enable_prefix_caching || result.tokens.empty() || !result.output_keys.empty()) {
    return;
  }
  const std::int32_t width = config_.block_size.raw();
  std::size_t next_token = 0;
  std::vector<token_id> tokens(static_cast<std::size_t>(width));
  for (std::uint32_t i = 0; i < done.work.size(); ++i) {
    const sequence_work& work = done.work[i];
    const sequence& s = sequences_[work.sequence];
    const request_spec& spec = requests_[s.request].spec;
    const auto& prompt = spec.prompt;
    const std::int32_t known = (s.prompt_tokens + s.output_tokens).raw() + 1;
    for (std::uint16_t k = 0; k < work.samples; ++k, ++next_token) {
      if (s.state == sequence_state::finished || prompt == nullptr || known % width != 0) continue;
      const std::int32_t first = known - width;
      for (std::int32_t at = first; at < known - 1; ++at) {
        const auto position = static_cast<std::size_t>(at);
        tokens[position - static_cast<std::size_t>(first)] =
            position < prompt->size() ? (*prompt)[position] : s.output[position - prompt->size()];
      }
      tokens.back() = result.tokens[next_token];
      const block_key parent = first == 0
                                   ? spec.root.value_or(hasher_.root({}))
                                   : key_of(s, static_cast<std::uint32_t>(first / width - 1));
      result.output_keys.emplace_back(i, hasher_.chain(parent, tokens));
    }
  }
}

// Who was computed, or got a copied block, in a failed step: the KV is void.
void scheduler::fail_all(const step& done) {
  const auto fail = [&](sequence& s) {
    s.failed = true;
    if (s.held_by_batch && s.state == sequence_state::running) {
      give_back(s);
    } else if (s.state != sequence_state::finished) {
      finish(s, reason::finished_executor_failed);
    }
  };
  for (const sequence_work& work : done.work) fail(sequences_[work.sequence]);
  for (const fork_command& fork : done.forks) {
    sequence& child = sequences_[fork.child];
    if (child.state == sequence_state::running) fail(child);
  }
}

// Blocks that the step filled: the ledger learns their names, and, where the
// step succeeded, the prefix cache will learn their keys.
void scheduler::book_namings(const step& done) {
  std::size_t at = 0;
  const auto width = static_cast<std::size_t>(config_.block_size.raw());
  for (const naming_command& command : done.namings) {
    sequence& s = sequences_[command.sequence];
    const bool holds = s.state == sequence_state::running && s.slot == command.slot;
    for (std::uint32_t i = 0; i < command.count; ++i, ++at) {
      const block_id block = done.named[at];
      if (holds) ledger_.name(s.account, block);
      if (!command.keyed || s.failed) continue;
      match_batch::publication change{{done.keys[command.keys_begin + i], block}, 0, false, false};
      const auto& prompt = requests_[s.request].spec.prompt;
      if (prompt != nullptr) {
        change.with_tokens = true;
        change.tokens_begin = static_cast<std::uint32_t>(change_tokens_.size());
        for (std::size_t k = 0; k < width; ++k) {
          const std::size_t position = (command.first_block + i) * width + k;
          change_tokens_.push_back(position < prompt->size() ? (*prompt)[position]
                                                             : s.output[position - prompt->size()]);
        }
      }
      changes_.push_back(change);
    }
  }
}

void scheduler::book_work(const step& done, std::uint32_t index, result_cursor& next) {
  const sequence_work& work = done.work[index];
  sequence& s = sequences_[work.sequence];
  --s.steps_in_flight;
  if (work.samples > 0) --s.pending_tokens;
  const bool over = s.state == sequence_state::finished || s.held_by_batch;
  // All samples live before one may end, so that the last to end ends the request.
  if (work.samples > 1) {
    children_.clear();
    for (std::uint16_t k = 1; k < work.samples && !over; ++k) children_.push_back(&add_child(s, k));
    s.forks_wanted = 0;
  }
  const step_result& result = done.result;
  for (std::uint16_t k = 0; k < work.samples; ++k, ++next.token) {
    finish_kind how = finish_kind::none;
    if (next.finish < result.finishes.size() && result.finishes[next.finish].work == index &&
        result.finishes[next.finish].sample == k) {
      how = result.finishes[next.finish++].kind;
    }
    const bool keyed =
        next.key < result.output_keys.size() && result.output_keys[next.key].first == index;
    if (over) {
      ++totals_.wasted_tokens;
      if (keyed) ++next.key;
      continue;
    }
    sequence& sample = k == 0 ? s : *children_[k - 1U];
    if (keyed) sample.output_keys.push_back(result.output_keys[next.key++].second);
    book_sample(sample, result, next.token, how);
  }
}

void scheduler::book_sample(sequence& s, const step_result& result, std::size_t index,
                            finish_kind how) {
  token_event event{s.id, requests_[s.request].spec.sink, s.sample};
  if (index < result.tokens.size()) event.token = result.tokens[index];
  if (index < result.text_ends.size()) {
    const std::uint32_t begin = index == 0 ? 0 : result.text_ends[index - 1];
    event.text_begin = static_cast<std::uint32_t>(events_.text.size());
    event.text_size = result.text_ends[index] - begin;
    events_.text.append(result.text, begin, event.text_size);
  }
  const request_spec& spec = requests_[s.request].spec;
  if (index < result.logprobs.size() && spec.sampling && spec.sampling->logprobs >= 0) {
    event.logprobs = static_cast<std::int32_t>(events_.logprobs.size());
    events_.logprobs.push_back(result.logprobs[index]);
  }
  events_.tokens.push_back(event);
  ++s.output_tokens;
  ++totals_.generated_tokens;
  if (spec.prompt != nullptr) s.output.push_back(event.token);
  switch (how) {
    case finish_kind::eos:
      return finish(s, reason::finished_eos);
    case finish_kind::stop_token:
    case finish_kind::stop_string:
      return finish(s, reason::finished_stop);
    case finish_kind::error:
      return finish(s, reason::finished_error);
    case finish_kind::none:
      break;
  }
  if (s.prompt_tokens + s.output_tokens >= s.end_tokens) finish(s, reason::finished_length);
}

// ---- ends

void scheduler::count_end(reason why) {
  if (is_rejection(why)) {
    ++totals_.rejected;
  } else if (why == reason::finished_cancelled) {
    ++totals_.cancelled;
  } else if (why == reason::finished_error || why == reason::finished_executor_failed) {
    ++totals_.failed;
  } else {
    ++totals_.completed;
  }
}

void scheduler::finish(sequence& s, reason why, std::int64_t a, std::int64_t b) {
  request_state& request = requests_[s.request];
  --request.alive;
  const bool done = request.alive == 0;
  record_.finished.push_back({name_of(s), why, a, b});
  events_.finishes.push_back({s.id, request.spec.sink, s.sample, done, why, a, b, s.output_tokens,
                              s.cached_tokens, s.preemptions, s.submitted_at, s.admitted_at});
  const bool failed = why == reason::finished_executor_failed;
  if (s.state == sequence_state::waiting) {
    if (s.queued) waiting_.erase(s);
    std::erase_if(pending_forks_, [&](const pending_fork& f) { return f.child == s.index; });
    s.state = sequence_state::finished;
    ended_.push_back(s.index);
  } else if (config_.policy == policy_kind::static_batch && !failed) {
    s.held_by_batch = true;
  } else {
    give_back(s);
  }
  if (done) {
    count_end(why);
    request_by_id_.erase(request.spec.id.raw());
    --requests_alive_;
  }
}

// The blocks go back with the next plan; by the ledger they are free now.
void scheduler::give_back(sequence& s) {
  ledger_.release(s.account);
  pending_releases_.push_back({s.slot});
  slots_.push_back(s.slot);
  s.state = sequence_state::finished;
  ended_.push_back(s.index);
}

void scheduler::end_static_batch_if_done() {
  if (config_.policy != policy_kind::static_batch) return;
  sweep_ended();
  const bool done = std::ranges::all_of(
      running_, [](const sequence* s) { return s->held_by_batch && s->steps_in_flight == 0; });
  if (!done) return;
  for (sequence* s : running_) give_back(*s);
}

// Forgets sequences that ended, once no step in flight names them.
void scheduler::sweep_ended() {
  if (ended_.empty()) return;
  std::erase_if(running_, [](const sequence* s) { return s->state == sequence_state::finished; });
  std::erase_if(ended_, [&](std::uint32_t index) {
    sequence& s = sequences_[index];
    if (s.steps_in_flight > 0) return false;
    request_state& request = requests_[s.request];
    std::erase(request.sequences, index);
    if (--request.kept == 0) {
      request.spec = {};
      free_requests_.push_back(s.request);
    }
    s = {};
    free_sequences_.push_back(index);
    return true;
  });
}

}  // namespace octavo
