// The executor that computes on the CPU: see cpu_executor.hpp.
#include "cpu/cpu_executor.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "model/generation/kv_groups.hpp"

namespace octavo::cpu {
cpu_executor::cpu_executor(std::shared_ptr<const decoder_weights> weights, model::tokenizer words,
                           cpu_executor_options options)
    : weights_(std::move(weights)),
      options_(std::move(options)),
      pool_(options_.threads),
      cache_(weights_->config, options_.num_blocks, weights_->ranks(), options_.kv_dtype),
      decoder_(*weights_, pool_, cache_),
      generations_(std::move(words),
                   model::engine_kv_groups(weights_->config, kv_cache::block_size),
                   {options_.end_tokens, options_.seed}) {
  if (options_.tensor_parallel_size == weights_->ranks()) return;
  throw input_error("tensor_parallel_size is " + std::to_string(options_.tensor_parallel_size) +
                    "; the weights are cut for " + std::to_string(weights_->ranks()));
}

executor_capabilities cpu_executor::capabilities() const {
  executor_capabilities can;
  can.kv_groups = model::engine_kv_groups(weights_->config, kv_cache::block_size);
  can.num_blocks = block_count{options_.num_blocks};
  can.block_bytes = static_cast<std::int64_t>(cache_.block_bytes());
  can.max_num_batched_tokens = token_count::max();
  can.device_name = "cpu";
  return can;
}

step_ptr cpu_executor::await() {
  step_ptr plan = std::move(pending_.front());
  pending_.erase(pending_.begin());
  generations_.follow(*plan);
  for (const block_copy& copy : plan->copies) cache_.copy(copy.from, copy.to);
  if (plan->work.empty()) return plan;
  const std::span<float> logits = decoder_.forward(model::batch_of(*plan, generations_.slots()));
  generations_.expect(*plan, wanted_);
  choose_tokens(*plan, logits);
  generations_.take(*plan, wanted_, chosen_);
  return plan;
}

// Chooses all tokens of the step. Vocabularies are long, so threads share the work;
// a token depends on its own sequence alone.
void cpu_executor::choose_tokens(const step& plan, std::span<float> logits) {
  chosen_.resize(wanted_.size());
  const auto width = static_cast<std::size_t>(weights_->config.vocab_size);
  // Weights may have rows beyond the tokens that exist.
  const std::size_t known =
      std::min(width, static_cast<std::size_t>(generations_.words().vocab_size()));
  pool_.run(wanted_.size(), [&](std::size_t which) {
    const model::wanted_token& want = wanted_[which];
    const auto room = rooms_.take();
    std::span<float> row = logits.subspan(want.row * width, known);
    // Several samples start from the same logits; sampling may change them.
    if (plan.work[want.work].samples > 1) {
      room->logits.assign(row.begin(), row.end());
      row = room->logits;
    }
    chosen_[which] = room->sampler.sample(row, model::generations::sampling(want),
                                          generations_.state(plan, want));
  });
}

}  // namespace octavo::cpu
