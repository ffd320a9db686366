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

device_sampler::device_sampler(int rows_max, int vocabulary, int slots, int tokens_max)
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
  logit_ids_ = device_array<std::int32_t>(rows);
  new_tokens_ = device_array<std::int32_t>(static_cast<std::size_t>(tokens_max));
  top_tokens_ = device_array<std::int32_t>(tops);
  logprobs_ = device_array<float>(rows);
  top_logprobs_ = device_array<float>(tops);
  for (host_memory& host : host_) {
    host.rows = pinned_array<sampling_row>(rows);
    host.biases = pinned_array<token_bias>(listed_biases_max);
    host.tokens = pinned_array<std::int32_t>(listed_tokens_max);
    host.logit_ids = pinned_array<std::int32_t>(rows);
    host.chosen = pinned_array<std::int32_t>(rows);
    host.top_tokens = pinned_array<std::int32_t>(tops);
    host.logprobs = pinned_array<float>(rows);
    host.top_logprobs = pinned_array<float>(tops);
  }
}

bool device_sampler::describe(const step& plan, const model::generations& all,
                              std::span<const model::wanted_token> wanted) {
  batch_.clear();
  for (const model::wanted_token& want : wanted) {
    const sequence_work& work = plan.work[want.work];
    const sampling_parameters& how = model::generations::sampling(want);
    const model::sampling_state state = all.state(plan, want);
    sampling_request request{state.seed, state.output.size(), state.end_tokens, -1};
    if (sampling_batch::needs_history(how)) {
      if (work.samples > 1 || static_cast<int>(work.slot) >= slots_) return false;
      // Of what was chosen, only the last can be unknown.
      const bool known = state.output.empty() || state.output.back() != model::unknown_token;
      if (!known && !follows(plan, want)) return false;
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

void device_sampler::take_history() {
  if (history_.size() > 0) return;
  history_ = device_array<std::uint32_t>(static_cast<std::size_t>(slots_) *
                                         static_cast<std::size_t>(vocabulary_));
  counted_.resize(static_cast<std::size_t>(slots_));
}

// Does the slot's history hold all tokens before the wanted one?
bool device_sampler::follows(const step& plan, const model::wanted_token& want) const {
  const sequence_work& work = plan.work[want.work];
  if (work.slot >= counted_.size()) return false;
  const counted& had = counted_[work.slot];
  return had.request == work.request && had.sample == work.sample && had.tokens == want.position;
}

// A history follows its sequence token by token: sampling counts what it chooses. One that
// is of another sequence, or has missed a token, is counted anew.
void device_sampler::bring_history(stream& on, const step& plan, const model::generations& all,
                                   std::span<const model::wanted_token> wanted) {
  for (const model::wanted_token& want : wanted) {
    if (!sampling_batch::needs_history(model::generations::sampling(want))) continue;
    take_history();
    const sequence_work& work = plan.work[want.work];
    if (!follows(plan, want)) count_anew(on, static_cast<int>(work.slot), all.state(plan, want));
    counted_[work.slot] = {work.request, work.sample, want.position + 1};
  }
}

void device_sampler::count_anew(stream& on, int slot, const model::sampling_state& state) {
  clear_history(history_.data(), vocabulary_, slot, on);
  for (const bool prompt : {true, false}) {
    const auto part = prompt ? state.prompt : state.output;
    if (part.empty()) continue;
    new_tokens_.upload(on, part);
    add_history(history_.data(), vocabulary_, slot, new_tokens_.data(),
                static_cast<int>(part.size()), prompt, on);
  }
}

// Where several samples start from one row of logits, each gets a copy.
const float* device_sampler::rows_of(stream& on, const step& plan,
                                     std::span<const model::wanted_token> wanted,
                                     const float* logits, host_memory& host) {
  const bool plain = std::ranges::all_of(
      wanted, [&](const model::wanted_token& want) { return plan.work[want.work].samples == 1; });
  if (plain) return logits;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    host.logit_ids[i] = static_cast<std::int32_t>(wanted[i].row);
  }
  return expand(on, host.logit_ids.span().first(wanted.size()), logits);
}

void device_sampler::take_copies() {
  if (expanded_.size() > 0) return;
  expanded_ = device_array<float>(static_cast<std::size_t>(rows_max_) *
                                  static_cast<std::size_t>(vocabulary_));
}

const float* device_sampler::expand(stream& on, std::span<const std::int32_t> ids,
                                    const float* logits) {
  logit_ids_.upload(on, ids);
  take_copies();
  row_gather_params p;
  p.rows = static_cast<int>(ids.size());
  p.row_bytes = static_cast<std::size_t>(vocabulary_) * sizeof(float);
  p.ids = logit_ids_.data();
  p.input = logits;
  p.output = expanded_.data();
  gather_rows(p, on);
  return expanded_.data();
}

void device_sampler::upload_descriptions(stream& on, host_memory& host) {
  const auto send = [&on](const auto& from, auto& through, auto& to) {
    std::ranges::copy(from, through.data());
    to.upload(on, through.span().first(from.size()));
  };
  send(batch_.rows(), host.rows, rows_);
  send(batch_.biases(), host.biases, biases_);
  send(batch_.tokens(), host.tokens, tokens_);
}

void device_sampler::download_results(stream& on, std::size_t count, const std::int32_t* chosen,
                                      host_memory& host) {
  const std::size_t tops = count * host.top_max;
  copy_to_host(on, host.chosen.data(), chosen, count * sizeof(std::int32_t));
  logprobs_.download(on, host.logprobs.span().first(count));
  top_tokens_.download(on, host.top_tokens.span().first(tops));
  top_logprobs_.download(on, host.top_logprobs.span().first(tops));
}

bool device_sampler::queue(stream& on, const step& plan, const model::generations& all,
                           std::span<const model::wanted_token> wanted, const float* logits,
                           std::int32_t* chosen, std::size_t turn) {
  if (wanted.size() > static_cast<std::size_t>(rows_max_)) return false;
  if (!describe(plan, all, wanted)) return false;
  bring_history(on, plan, all, wanted);
  const float* rows = rows_of(on, plan, wanted, logits, host_[turn]);
  queue_batch(on, rows, chosen, host_[turn]);
  return true;
}

// Chooses for the batch's rows and fetches what was chosen.
void device_sampler::queue_batch(stream& on, const float* logits, std::int32_t* chosen,
                                 host_memory& host) {
  host.top_max = static_cast<std::size_t>(batch_.top_max());
  upload_descriptions(on, host);
  sampling_params p;
  p.rows = static_cast<int>(batch_.rows().size());
  p.vocabulary = vocabulary_;
  p.logits = logits;
  p.how = rows_.data();
  p.biases = biases_.data();
  p.tokens = tokens_.data();
  p.history = history_.data();
  p.any_draws = batch_.any_draws();
  p.top_max = batch_.top_max();
  p.chosen = chosen;
  p.logprobs = logprobs_.data();
  p.top_tokens = top_tokens_.data();
  p.top_logprobs = top_logprobs_.data();
  p.workspace = workspace_.data();
  p.workspace_bytes = workspace_.bytes();
  sample(p, on);
  download_results(on, batch_.rows().size(), chosen, host);
}

void device_sampler::rehearse(stream& on, const float* logits, std::int32_t* chosen, int rows) {
  take_history();
  history_.fill_zero(on);
  new_tokens_.fill_zero(on);
  clear_history(history_.data(), vocabulary_, 0, on);
  add_history(history_.data(), vocabulary_, 0, new_tokens_.data(), 1, true, on);
  sampling_parameters how;
  how.top_p = 0.9F;
  how.presence_penalty = 1;
  how.logprobs = std::min(sampling_top_max, vocabulary_);
  batch_.clear();
  host_memory& host = host_[0];
  const int count = std::min({rows, rows_max_, slots_});
  for (int row = 0; row < count; ++row) {
    batch_.add(how, {0, 0, {}, row});
    host.logit_ids[static_cast<std::size_t>(row)] = row;
  }
  const auto ids = host.logit_ids.span().first(static_cast<std::size_t>(count));
  queue_batch(on, expand(on, ids, logits), chosen, host);
}

void device_sampler::read(std::span<const model::wanted_token> wanted, std::size_t turn,
                          std::vector<model::sampled_token>& chosen) const {
  const host_memory& host = host_[turn];
  chosen.resize(wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    chosen[i] = {host.chosen[i], host.logprobs[i], {}};
    const int asked = model::generations::sampling(wanted[i]).logprobs;
    for (std::size_t k = 0; k < host.top_max && static_cast<int>(k) < asked; ++k) {
      const std::int32_t token = host.top_tokens[i * host.top_max + k];
      if (token >= 0) chosen[i].top.emplace_back(token, host.top_logprobs[i * host.top_max + k]);
    }
  }
}

}  // namespace octavo::gpu
