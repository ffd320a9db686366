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
  for (const admission_command& admission : plan.admissions) texts_.erase(admission.slot);
  // A forked sample's first token is known with its first work, which may come later.
  for (const fork_command& fork : plan.forks) texts_.erase(fork.child_slot);
  for (const sequence_work& work : plan.work) {
    auto& text = texts_[work.slot];
    if (text != nullptr) continue;
    const slot& state = slots_.at(work.slot);
    text = std::make_shared<sequence_text>(text_of(state, state.tokens.size()));
  }
}

// A sequence that enters (again) has its text so far behind it.
sequence_text generations::text_of(const slot& state, std::size_t tokens) const {
  sequence_text text{words_, sampling_of(state), options_.end_tokens};
  std::string before;
  for (std::size_t at = state.prompt_tokens; at < tokens; ++at) {
    text.push(state.tokens[at], before);
  }
  return text;
}

void generations::expect(const step& plan, std::vector<wanted_token>& to) {
  to.clear();
  std::size_t row = 0;
  for (std::uint32_t i = 0; i < plan.work.size(); ++i) {
    const sequence_work& work = plan.work[i];
    if (work.samples == 0) continue;
    const std::shared_ptr<slot>& sequence = slots_.share(work.slot);
    const std::size_t position = sequence->tokens.size();
    for (std::uint16_t k = 0; k < work.samples; ++k) {
      to.push_back({i, k, row, position, sequence, texts_.at(work.slot)});
    }
    sequence->tokens.push_back(unknown_token);
    ++row;
  }
}

const sampling_parameters& generations::sampling(const wanted_token& want) {
  return sampling_of(*want.sequence);
}

sampling_state generations::state(const step& plan, const wanted_token& want) const {
  const sequence_work& work = plan.work[want.work];
  const slot& state = *want.sequence;
  const auto& given = sampling_of(state).seed;
  const std::uint64_t base =
      given ? static_cast<std::uint64_t>(*given) : options_.seed ^ (state.request.raw() << 20);
  sampling_state from;
  const std::span<const token_id> tokens = std::span{state.tokens}.first(want.position);
  from.prompt = tokens.first(state.prompt_tokens);
  from.output = tokens.subspan(state.prompt_tokens);
  from.seed = base * 1'000'003 + (work.samples > 1 ? want.sample : work.sample);
  from.end_tokens = options_.end_tokens;
  return from;
}

void generations::take(step& plan, std::span<const wanted_token> wanted,
                       std::span<sampled_token> chosen) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const wanted_token& want = wanted[i];
    if (want.sample == 0) {
      take_token(plan, want, *want.text, chosen[i]);
      want.sequence->tokens[want.position] = chosen[i].token;
    } else {
      // It becomes a sequence of its own by a fork that brings this token.
      sequence_text other = text_of(*want.sequence, want.position);
      take_token(plan, want, other, chosen[i]);
    }
  }
}

void generations::take_token(step& plan, const wanted_token& want, sequence_text& text,
                             sampled_token& chosen) const {
  step_result& result = plan.result;
  const bool is_last = want.position + 1 >= want.sequence->end_tokens;
  const finish_kind kind = text.take(chosen.token, is_last, result.text);
  if (sampling(want).logprobs >= 0) {
    result.logprobs.resize(result.tokens.size());
    result.logprobs.push_back({chosen.logprob, std::move(chosen.top)});
  }
  result.tokens.push_back(chosen.token);
  result.text_ends.push_back(static_cast<std::uint32_t>(result.text.size()));
  if (kind != finish_kind::none) result.finishes.push_back({want.work, want.sample, kind});
}

}  // namespace octavo::model
