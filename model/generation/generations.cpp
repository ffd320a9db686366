// Around the decoder: see generations.hpp.
#include "model/generation/generations.hpp"

#include <string>
#include <utility>

namespace octavo::model {
namespace {

const sampling_parameters default_sampling;

const sampling_parameters& sampling_of(const slot& state) {
  return state.sampling == nullptr ? default_sampling : *state.sampling;
}

}  // namespace

void generations::follow(const step& plan) {
  slots_.follow(plan);
  for (const admission_command& admission : plan.admissions) {
    texts_.erase(admission.slot);
    texts_.emplace(admission.slot, generation_of(slots_.at(admission.slot), admission.sample));
  }
  // A forked sample's first token is known with its first work, which may come later.
  for (const fork_command& fork : plan.forks) texts_.erase(fork.child_slot);
  for (const sequence_work& work : plan.work) {
    if (texts_.contains(work.slot)) continue;
    texts_.emplace(work.slot, generation_of(slots_.at(work.slot), work.sample));
  }
}

// A sequence that enters (again) has its text so far behind it.
generations::generation generations::generation_of(const slot& state, std::uint16_t sample) const {
  generation g{state.request, sample,
               sequence_text{words_, sampling_of(state), options_.end_tokens}};
  std::string before;
  for (std::size_t at = state.prompt_tokens; at < state.tokens.size(); ++at) {
    g.text.push(state.tokens[at], before);
  }
  return g;
}

void generations::list_wanted(const step& plan, std::vector<wanted_token>& to) {
  to.clear();
  std::size_t row = 0;
  for (std::uint32_t i = 0; i < plan.work.size(); ++i) {
    for (std::uint16_t k = 0; k < plan.work[i].samples; ++k) to.push_back({i, k, row});
    if (plan.work[i].samples > 0) ++row;
  }
}

const sampling_parameters& generations::sampling(const step& plan, const wanted_token& want) const {
  return sampling_of(slots_.at(plan.work[want.work].slot));
}

sampling_state generations::state(const step& plan, const wanted_token& want) const {
  const sequence_work& work = plan.work[want.work];
  const slot& state = slots_.at(work.slot);
  const auto& given = sampling_of(state).seed;
  const std::uint64_t base =
      given ? static_cast<std::uint64_t>(*given) : options_.seed ^ (state.request.raw() << 20);
  sampling_state from;
  from.prompt = std::span{state.tokens}.first(state.prompt_tokens);
  from.output = std::span{state.tokens}.subspan(state.prompt_tokens);
  from.seed = base * 1'000'003 + (work.samples > 1 ? want.sample : work.sample);
  from.end_tokens = options_.end_tokens;
  return from;
}

void generations::take(step& plan, std::span<sampled_token> chosen) {
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < plan.work.size(); ++i) {
    const std::size_t count = plan.work[i].samples;
    if (count > 0) take_work(plan, i, chosen.subspan(next, count));
    next += count;
  }
}

void generations::take_work(step& plan, std::uint32_t index, std::span<sampled_token> chosen) {
  const std::uint32_t where = plan.work[index].slot;
  slot& state = slots_.at(where);
  for (std::uint16_t k = 0; k < chosen.size(); ++k) {
    if (k == 0) {
      take_token(plan, index, k, texts_.at(where), state, chosen[k]);
    } else {
      // It becomes a sequence of its own by a fork that brings this token.
      generation other = generation_of(state, k);
      take_token(plan, index, k, other, state, chosen[k]);
    }
  }
  state.tokens.push_back(chosen[0].token);
}

void generations::take_token(step& plan, std::uint32_t index, std::uint16_t sample, generation& of,
                             const slot& state, sampled_token& chosen) const {
  step_result& result = plan.result;
  const bool is_last = state.tokens.size() + 1 >= state.end_tokens;
  const finish_kind kind = of.text.take(chosen.token, is_last, result.text);
  if (sampling_of(state).logprobs >= 0) {
    result.logprobs.resize(result.tokens.size());
    result.logprobs.push_back({chosen.logprob, std::move(chosen.top)});
  }
  result.tokens.push_back(chosen.token);
  result.text_ends.push_back(static_cast<std::uint32_t>(result.text.size()));
  if (kind != finish_kind::none) result.finishes.push_back({index, sample, kind});
}

}  // namespace octavo::model
