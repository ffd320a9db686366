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
#include "cpu/sampling_rooms.hpp"
#include "cpu/slot_table.hpp"
#include "cpu/thread_pool.hpp"
#include "model/tokenizer/sequence_text.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace octavo::cpu {

struct cpu_executor_options {
  /// Threads of a step, the executor's own included.
  std::size_t threads = 1;
  /// KV blocks of each rank.
  std::int32_t num_blocks = 0;
  /// Ranks that the weights were cut for.
  int tensor_parallel_size = 1;
  /// How keys and values are kept: fp16 or int8.
  model::kv_dtype kv_dtype = model::kv_dtype::fp16;
  /// Tokens at which generation ends, ascending.
  std::vector<token_id> end_tokens;
  /// For requests that bring no seed.
  std::uint64_t seed = 0;
};

/// KV groups of a model as the engine's configuration has them.
[[nodiscard]] std::vector<kv_group> kv_groups_of(const model::model_config& config);

class cpu_executor final : public executor {
 public:
  /// Weights and tokenizer are shared with whoever loaded them. Throws input_error
  /// where the weights are not cut for tensor_parallel_size ranks, infeasible_error
  /// where there is no room for the blocks.
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
    model::sequence_text text;
  };

  /// A token that the step shall choose.
  struct wanted_token {
    std::uint32_t work = 0;
    std::uint16_t sample = 0;
    std::size_t row = 0;  ///< of the logits
  };

  void open_generations(const step& plan);
  [[nodiscard]] decoder_batch batch_of(const step& plan);
  void choose_tokens(const step& plan, std::span<float> logits);
  void add_tokens(step& plan, std::uint32_t index, std::size_t& next);
  void add_token(step& plan, std::uint32_t index, std::uint16_t sample, generation& of,
                 const slot& state, model::sampled_token& chosen);
  [[nodiscard]] std::uint64_t seed_of(const slot& state, std::uint16_t sample) const;
  [[nodiscard]] generation generation_of(const slot& state, std::uint16_t sample) const;

  std::shared_ptr<const decoder_weights> weights_;
  model::tokenizer words_;
  cpu_executor_options options_;
  thread_pool pool_;
  kv_cache cache_;
  decoder decoder_;
  slot_table slots_;
  sampling_rooms rooms_;
  std::vector<wanted_token> wanted_;
  std::vector<model::sampled_token> chosen_;  ///< parallel to wanted_
  std::map<std::uint32_t, generation> generations_;
  std::vector<step_ptr> pending_;
};

}  // namespace octavo::cpu
