// The executor that computes on the CPU: see cpu_executor.hpp.
#include "cpu/cpu_executor.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "model/kv_arithmetic.hpp"

namespace octavo::cpu {
namespace {

const sampling_parameters default_sampling;

const sampling_parameters& sampling_of(const slot& state) {
  return state.sampling == nullptr ? default_sampling : *state.sampling;
}

}  // namespace

std::vector<kv_group> kv_groups_of(const model::model_config& config) {
  std::vector<kv_group> groups;
  const auto layout = model::make_kv_layout(config, model::kv_dtype::fp16, 1, kv_cache::block_size);
  for (const model::kv_group& group : layout.groups) {
    groups.push_back({token_count{static_cast<std::int32_t>(group.window)},
                      static_cast<std::int32_t>(group.pool_blocks)});
  }
  return groups;
}

cpu_executor::cpu_executor(std::shared_ptr<const decoder_weights> weights, model::tokenizer words,
                           cpu_executor_options options)
    : weights_(std::move(weights)),
      words_(std::move(words)),
      options_(std::move(options)),
      pool_(options_.threads),
      cache_(weights_->config, options_.num_blocks, weights_->ranks(), options_.kv_dtype),
      decoder_(*weights_, pool_, cache_),
      slots_(kv_groups_of(weights_->config)) {
  if (options_.tensor_parallel_size == weights_->ranks()) return;
  throw input_error("tensor_parallel_size is " + std::to_string(options_.tensor_parallel_size) +
                    "; the weights are cut for " + std::to_string(weights_->ranks()));
}

executor_capabilities cpu_executor::capabilities() const {
  executor_capabilities can;
  can.kv_groups = kv_groups_of(weights_->config);
  can.num_blocks = block_count{options_.num_blocks};
  can.block_bytes = static_cast<std::int64_t>(cache_.block_bytes());
  can.max_num_batched_tokens = token_count::max();
  can.device_name = "cpu";
  return can;
}

step_ptr cpu_executor::await() {
  step_ptr plan = std::move(pending_.front());
  pending_.erase(pending_.begin());
  slots_.follow(*plan);
  for (const block_copy& copy : plan->copies) cache_.copy(copy.from, copy.to);
  if (plan->work.empty()) return plan;
  open_generations(*plan);
  const decoder_batch batch = batch_of(*plan);
  std::span<float> logits = decoder_.forward(batch);
  choose_tokens(*plan, logits);
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < plan->work.size(); ++i) add_tokens(*plan, i, next);
  return plan;
}

// A sequence that enters (again) has its text so far behind it.
cpu_executor::generation cpu_executor::generation_of(const slot& state,
                                                     std::uint16_t sample) const {
  generation g{state.request, sample,
               model::sequence_text{words_, sampling_of(state), options_.end_tokens}};
  std::string before;
  for (std::size_t at = state.prompt_tokens; at < state.tokens.size(); ++at) {
    g.text.push(state.tokens[at], before);
  }
  return g;
}

void cpu_executor::open_generations(const step& plan) {
  for (const admission_command& admission : plan.admissions) {
    generations_.erase(admission.slot);
    generations_.emplace(admission.slot,
                         generation_of(slots_.at(admission.slot), admission.sample));
  }
  // A forked sample's first token is known with its first work, which may come later.
  for (const fork_command& fork : plan.forks) generations_.erase(fork.child_slot);
  for (const sequence_work& work : plan.work) {
    if (generations_.contains(work.slot)) continue;
    generations_.emplace(work.slot, generation_of(slots_.at(work.slot), work.sample));
  }
}

decoder_batch cpu_executor::batch_of(const step& plan) {
  decoder_batch batch;
  for (const sequence_work& work : plan.work) {
    const slot& state = slots_.at(work.slot);
    const auto first = static_cast<std::size_t>(work.first_position.raw());
    const auto count = static_cast<std::size_t>(work.count.raw());
    const auto row = static_cast<std::uint32_t>(batch.tokens.size());
    if (count == 0) continue;
    batch.sequences.push_back(
        {&state, work.first_position.raw(), row, static_cast<std::uint32_t>(count)});
    batch.tokens.insert(batch.tokens.end(),
                        state.tokens.begin() + static_cast<std::ptrdiff_t>(first),
                        state.tokens.begin() + static_cast<std::ptrdiff_t>(first + count));
    if (work.samples > 0) batch.logit_rows.push_back(static_cast<std::uint32_t>(row + count - 1));
  }
  return batch;
}

std::uint64_t cpu_executor::seed_of(const slot& state, std::uint16_t sample) const {
  const auto& given = sampling_of(state).seed;
  const std::uint64_t base =
      given ? static_cast<std::uint64_t>(*given) : options_.seed ^ (state.request.raw() << 20);
  return base * 1'000'003 + sample;
}

// Chooses all tokens of the step. Vocabularies are long, so threads share the work;
// a token depends on its own sequence alone.
void cpu_executor::choose_tokens(const step& plan, std::span<float> logits) {
  wanted_.clear();
  std::size_t row = 0;
  for (std::uint32_t i = 0; i < plan.work.size(); ++i) {
    for (std::uint16_t k = 0; k < plan.work[i].samples; ++k) wanted_.push_back({i, k, row});
    if (plan.work[i].samples > 0) ++row;
  }
  chosen_.resize(wanted_.size());
  const auto width = static_cast<std::size_t>(weights_->config.vocab_size);
  // Weights may have rows beyond the tokens that exist.
  const std::size_t known = std::min(width, static_cast<std::size_t>(words_.vocab_size()));
  pool_.run(wanted_.size(), [&](std::size_t which) {
    const wanted_token& want = wanted_[which];
    const sequence_work& work = plan.work[want.work];
    const slot& state = slots_.at(work.slot);
    model::sampling_state from;
    from.prompt = std::span{state.tokens}.first(state.prompt_tokens);
    from.output = std::span{state.tokens}.subspan(state.prompt_tokens);
    from.seed = seed_of(state, work.samples > 1 ? want.sample : work.sample);
    from.end_tokens = options_.end_tokens;
    const auto room = rooms_.take();
    std::span<float> row_logits = logits.subspan(want.row * width, known);
    // Several samples start from the same logits; sampling may change them.
    if (work.samples > 1) {
      room->logits.assign(row_logits.begin(), row_logits.end());
      row_logits = room->logits;
    }
    chosen_[which] = room->sampler.sample(row_logits, sampling_of(state), from);
  });
}

void cpu_executor::add_tokens(step& plan, std::uint32_t index, std::size_t& next) {
  const sequence_work work = plan.work[index];
  if (work.samples == 0) return;
  slot& state = slots_.at(work.slot);
  const token_id first = chosen_[next].token;
  for (std::uint16_t k = 0; k < work.samples; ++k) {
    model::sampled_token& chosen = chosen_[next++];
    if (k == 0) {
      add_token(plan, index, k, generations_.at(work.slot), state, chosen);
    } else {
      // It becomes a sequence of its own by a fork that brings this token.
      generation other = generation_of(state, k);
      add_token(plan, index, k, other, state, chosen);
    }
  }
  state.tokens.push_back(first);
}

void cpu_executor::add_token(step& plan, std::uint32_t index, std::uint16_t sample, generation& of,
                             const slot& state, model::sampled_token& chosen) {
  const token_id token = chosen.token;
  step_result& result = plan.result;
  const bool is_last = state.tokens.size() + 1 >= state.end_tokens;
  const finish_kind kind = of.text.take(token, is_last, result.text);
  if (sampling_of(state).logprobs >= 0) {
    result.logprobs.resize(result.tokens.size());
    result.logprobs.push_back({chosen.logprob, std::move(chosen.top)});
  }
  result.tokens.push_back(token);
  result.text_ends.push_back(static_cast<std::uint32_t>(result.text.size()));
  if (kind != finish_kind::none) result.finishes.push_back({index, sample, kind});
}

}  // namespace octavo::cpu
