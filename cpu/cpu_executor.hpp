// The executor that computes on the CPU: it follows the plans, runs the decoder,
// samples, and turns tokens into text, so that a stop is a fact of the step.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/executor.hpp"
#include "cpu/decoder/decoder.hpp"
#include "cpu/decoder/weights.hpp"
#include "cpu/kv_cache.hpp"
#include "cpu/sequence_text.hpp"
#include "cpu/slot_table.hpp"
#include "cpu/thread_pool.hpp"
#include "model/sampling/sampler.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace octavo::cpu {

struct cpu_executor_options {
  /// Threads of a step, the executor's own included.
  std::size_t threads = 1;
  std::int32_t num_blocks = 0;
  /// Tokens at which generation ends, ascending.
  std::vector<token_id> end_tokens;
  /// For requests that bring no seed.
  std::uint64_t seed = 0;
};

/// KV groups of a model as the engine's configuration has them.
[[nodiscard]] std::vector<kv_group> kv_groups_of(const model::model_config& config);

class cpu_executor final : public executor {
 public:
  /// Weights and tokenizer are shared with whoever loaded them.
  cpu_executor(std::shared_ptr<const decoder_weights> weights, model::tokenizer words,
               cpu_executor_options options);

  [[nodiscard]] executor_capabilities capabilities() const override;
  void submit(step_ptr plan) override { pending_.push_back(std::move(plan)); }
  step_ptr await() override;

 private:
  /// What a slot's sequence needs beside its tokens.
  struct generation {
    request_id request;
    std::uint16_t sample = 0;
    sequence_text text;
  };

  void open_generations(const step& plan);
  [[nodiscard]] decoder_batch batch_of(const step& plan);
  void sample_work(step& plan, std::uint32_t index, std::span<float> logits);
  void add_token(step& plan, std::uint32_t index, std::uint16_t sample, generation& of,
                 const slot& state, token_id token);
  [[nodiscard]] std::uint64_t seed_of(const slot& state, std::uint16_t sample) const;
  [[nodiscard]] generation generation_of(const slot& state, std::uint16_t sample) const;

  std::shared_ptr<const decoder_weights> weights_;
  model::tokenizer words_;
  cpu_executor_options options_;
  thread_pool pool_;
  kv_cache cache_;
  decoder decoder_;
  slot_table slots_;
  model::sampler sampler_;
  std::map<std::uint32_t, generation> generations_;
  std::vector<step_ptr> pending_;
  std::vector<float> scratch_;
};

}  // namespace octavo::cpu
