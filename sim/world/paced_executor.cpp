// Simulated steps in wall time: see paced_executor.hpp.
#include "sim/world/paced_executor.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "model/sampling/sampler.hpp"
#include "sim/world/simulated_executor.hpp"

namespace octavo::sim {
namespace {

constexpr std::string_view placeholder_text =
    " This text is a placeholder: the tokens come when a real machine would send them, but no "
    "model was asked.";

}  // namespace

std::int32_t placeholder_length(request_id request, std::uint16_t sample) {
  const double u = model::uniform_at(request.raw(), sample);
  return 16 + static_cast<std::int32_t>(384 * u * u);
}

paced_executor::paced_executor(std::shared_ptr<const cost_model> cost, executor_capabilities can,
                               std::shared_ptr<const model::tokenizer> words, pace clock,
                               bool runs_ahead, placeholder_kind says)
    : cost_(std::move(cost)),
      can_(std::move(can)),
      words_(std::move(words)),
      clock_(std::move(clock)),
      runs_ahead_(runs_ahead),
      says_(says),
      phrase_(words_->encode(placeholder_text, {.add_special = false})) {
  if (phrase_.empty()) throw input_error("tokenizer: has no token for the placeholder text");
}

void paced_executor::submit(step_ptr plan) {
  const step_shape shape = shape_of(*plan, chunks_);
  const double device_us = cost_->device_time_us(shape);
  const double host_us = cost_->host_time_us(shape);
  const double total_us = runs_ahead_ ? std::max(device_us, host_us) : device_us + host_us;
  busy_until_s_ = std::max(clock_.moment_of(plan->planned_at), busy_until_s_) + total_us * 1e-6;
  pending_.emplace_back(std::move(plan), busy_until_s_);
}

step_ptr paced_executor::await() {
  auto [plan, end] = std::move(pending_.front());
  pending_.erase(pending_.begin());
  follow(*plan);
  clock_.wait_until(end);
  fill(*plan);
  return std::move(plan);
}

void paced_executor::follow(const step& plan) {
  for (const fork_command& fork : plan.forks) slots_[fork.child_slot] = slots_[fork.parent_slot];
  for (const admission_command& a : plan.admissions) {
    slots_[a.slot] = {a.request, a.prompt_tokens.raw(), a.end_tokens.raw(), a.sampling, {}, 0};
  }
}

void paced_executor::fill(step& plan) {
  for (std::uint32_t i = 0; i < plan.work.size(); ++i) {
    const sequence_work& work = plan.work[i];
    running& of = slots_[work.slot];
    // The token after position p is number p + 1 of prompt and output.
    const std::int32_t number = work.first_position.raw() + work.count.raw() + 1 - of.prompt_tokens;
    if (work.samples == 0) continue;
    add_token(plan, i, work.samples > 1 ? std::uint16_t{0} : work.sample, of, number);
    for (std::uint16_t k = 1; k < work.samples; ++k) {
      running other = of;  // becomes a sequence of its own by a fork
      add_token(plan, i, k, other, number);
    }
  }
}

// Output token `number`, from 1.
token_id paced_executor::token_at(std::int32_t number) const {
  return phrase_[static_cast<std::size_t>(std::max(number, 1) - 1) % phrase_.size()];
}

// A sequence that came by a fork, or comes back, is told again what it has said.
void paced_executor::tell_up_to(running& of, std::int32_t tokens) const {
  if (of.text && of.said == tokens) return;
  static const sampling_parameters usual;
  of.text.emplace(*words_, of.sampling ? *of.sampling : usual);
  std::string told;
  for (std::int32_t number = 1; number <= tokens; ++number) of.text->push(token_at(number), told);
}

void paced_executor::add_token(step& plan, std::uint32_t index, std::uint16_t sample, running& of,
                               std::int32_t number) {
  step_result& result = plan.result;
  const token_id token = token_at(number);
  if (of.sampling && of.sampling->logprobs >= 0) {
    result.logprobs.resize(result.tokens.size());
    result.logprobs.push_back({0, {}});
  }
  const bool ignores_end = of.sampling && of.sampling->ignore_eos;
  const std::int32_t least = of.sampling ? of.sampling->min_tokens : 0;
  const bool is_over =
      !ignores_end && number >= std::max(least, placeholder_length(of.request, sample));
  const bool is_last = is_over || of.prompt_tokens + number >= of.end_tokens;
  std::string text;
  tell_up_to(of, number - 1);
  finish_kind kind = of.text->take(token, is_last, text);
  of.said = number;
  if (kind == finish_kind::none && is_over) kind = finish_kind::eos;
  if (says_ == placeholder_kind::clock) {
    text = std::to_string(std::llround(clock_.seconds() * 1e6)) + ' ';
  }
  result.tokens.push_back(token);
  result.text += text;
  result.text_ends.push_back(static_cast<std::uint32_t>(result.text.size()));
  if (kind == finish_kind::none) return;
  const bool several = plan.work[index].samples > 1;
  result.finishes.push_back({index, several ? sample : std::uint16_t{0}, kind});
}

}  // namespace octavo::sim
