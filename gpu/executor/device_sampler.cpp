// Sampling on the device: see device_sampler.hpp.
#include "gpu/executor/device_sampler.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "gpu/kernels/row_gather/row_gather.hpp"

namespace octavo::gpu {
namespace {

/// Room for the lists of tokens of all rows of a step.
constexpr int listed_biases_max = 16'384;
constexpr int listed_tokens_max = 262'144;

}  // namespace

device_sampler::device_sampler(int rows_max, int vocabulary, int slots)
    : rows_max_(rows_max),
      vocabulary_(vocabulary),
      slots_(slots),
      batch_({rows_max, listed_biases_max, listed_tokens_max}),
      rows_(static_cast<std::size_t>(rows_max)),
      biases_(listed_biases_max),
      tokens_(listed_tokens_max),
      workspace_(sampling_workspace_bytes(rows_max, vocabulary, sampling_top_max)) {
  const auto rows = static_cast<std::size_t>(rows_max);
  const std::size_t tops = rows * sampling_top_max;
  for (auto* array : {&chosen_, &logit_ids_}) *array = device_array<std::int32_t>(rows);
  top_tokens_ = device_array<std::int32_t>(tops);
  logprobs_ = device_array<float>(rows);
  top_logprobs_ = device_array<float>(tops);
  host_chosen_ = pinned_array<std::int32_t>(rows);
  host_top_tokens_ = pinned_array<std::int32_t>(tops);
  host_logprobs_ = pinned_array<float>(rows);
  host_top_logprobs_ = pinned_array<float>(tops);
}

bool device_sampler::describe(const step& plan, const model::generations& all,
                              std::span<const model::wanted_token> wanted) {
  batch_.clear();
  for (const model::wanted_token& want : wanted) {
    const sequence_work& work = plan.work[want.work];
    const sampling_parameters& how = all.sampling(plan, want);
    const model::sampling_state state = all.state(plan, want);
    sampling_request request{state.seed, state.output.size(), state.end_tokens, -1};
    if (sampling_batch::needs_history(how)) {
      if (work.samples > 1 || static_cast<int>(work.slot) >= slots_) return false;
      request.history = static_cast<int>(work.slot);
    }
    try {
      batch_.add(how, request);
    } catch (const input_error&) {
      return false;
    }
  }
  return true;
}

// A history follows its sequence token by token: sampling counts what it chooses. One that
// is of another sequence, or has missed a token, is counted anew.
void device_sampler::bring_history(stream& on, const step& plan, const model::generations& all,
                                   std::span<const model::wanted_token> wanted) {
  for (const model::wanted_token& want : wanted) {
    if (!sampling_batch::needs_history(all.sampling(plan, want))) continue;
    if (history_.size() == 0) {
      history_ = device_array<std::uint32_t>(static_cast<std::size_t>(slots_) *
                                             static_cast<std::size_t>(vocabulary_));
      counted_.resize(static_cast<std::size_t>(slots_));
    }
    const sequence_work& work = plan.work[want.work];
    const model::sampling_state state = all.state(plan, want);
    const std::size_t tokens = state.prompt.size() + state.output.size();
    counted& had = counted_[work.slot];
    const bool follows =
        had.request == work.request && had.sample == work.sample && had.tokens == tokens;
    had = {work.request, work.sample, tokens + 1};
    if (follows) continue;
    clear_history(history_.data(), vocabulary_, static_cast<int>(work.slot), on);
    for (const bool prompt : {true, false}) {
      const auto part = prompt ? state.prompt : state.output;
      if (part.empty()) continue;
      // What still reads the array before must be done with it.
      on.synchronize();
      if (new_tokens_.size() < part.size()) new_tokens_ = device_array<std::int32_t>(part.size());
      new_tokens_.upload(on, part);
      add_history(history_.data(), vocabulary_, static_cast<int>(work.slot), new_tokens_.data(),
                  static_cast<int>(part.size()), prompt, on);
    }
  }
}

// Where several samples start from one row of logits, each gets a copy.
const float* device_sampler::rows_of(stream& on, const step& plan,
                                     std::span<const model::wanted_token> wanted,
                                     const float* logits) {
  const bool plain = std::ranges::all_of(
      wanted, [&](const model::wanted_token& want) { return plan.work[want.work].samples == 1; });
  if (plain) return logits;
  std::vector<std::int32_t> ids;
  for (const auto& want : wanted) ids.push_back(static_cast<std::int32_t>(want.row));
  logit_ids_.upload(on, std::span<const std::int32_t>(ids));
  const std::size_t size = wanted.size() * static_cast<std::size_t>(vocabulary_);
  if (expanded_.size() < size) expanded_ = device_array<float>(size);
  row_gather_params p;
  p.rows = static_cast<int>(wanted.size());
  p.row_bytes = static_cast<std::size_t>(vocabulary_) * sizeof(float);
  p.ids = logit_ids_.data();
  p.input = logits;
  p.output = expanded_.data();
  gather_rows(p, on);
  return expanded_.data();
}

bool device_sampler::choose(stream& on, const step& plan, const model::generations& all,
                            std::span<const model::wanted_token> wanted, const float* logits,
                            std::vector<model::sampled_token>& chosen) {
  if (wanted.size() > static_cast<std::size_t>(rows_max_)) return false;
  if (!describe(plan, all, wanted)) return false;
  bring_history(on, plan, all, wanted);
  rows_.upload(on, batch_.rows());
  if (!batch_.biases().empty()) biases_.upload(on, batch_.biases());
  if (!batch_.tokens().empty()) tokens_.upload(on, batch_.tokens());
  sampling_params p;
  p.rows = static_cast<int>(wanted.size());
  p.vocabulary = vocabulary_;
  p.logits = rows_of(on, plan, wanted, logits);
  p.how = rows_.data();
  p.biases = biases_.data();
  p.tokens = tokens_.data();
  p.history = history_.data();
  p.any_draws = batch_.any_draws();
  p.top_max = batch_.top_max();
  p.chosen = chosen_.data();
  p.logprobs = logprobs_.data();
  p.top_tokens = top_tokens_.data();
  p.top_logprobs = top_logprobs_.data();
  p.workspace = workspace_.data();
  p.workspace_bytes = workspace_.bytes();
  sample(p, on);
  const std::size_t tops = wanted.size() * static_cast<std::size_t>(p.top_max);
  chosen_.download(on, host_chosen_.span().first(wanted.size()));
  logprobs_.download(on, host_logprobs_.span().first(wanted.size()));
  top_tokens_.download(on, host_top_tokens_.span().first(tops));
  top_logprobs_.download(on, host_top_logprobs_.span().first(tops));
  on.synchronize();
  read(wanted, plan, all, chosen);
  return true;
}

void device_sampler::read(std::span<const model::wanted_token> wanted, const step& plan,
                          const model::generations& all,
                          std::vector<model::sampled_token>& chosen) const {
  const auto tops = static_cast<std::size_t>(batch_.top_max());
  chosen.resize(wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    chosen[i] = {host_chosen_[i], host_logprobs_[i], {}};
    const int asked = all.sampling(plan, wanted[i]).logprobs;
    for (std::size_t k = 0; k < tops && static_cast<int>(k) < asked; ++k) {
      const std::int32_t token = host_top_tokens_[i * tops + k];
      if (token >= 0) chosen[i].top.emplace_back(token, host_top_logprobs_[i * tops + k]);
    }
  }
}

}  // namespace octavo::gpu
