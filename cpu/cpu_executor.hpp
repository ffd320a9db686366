// The executor that computes on the CPU: it follows the plans, runs the decoder, and
// samples.
#pragma once

#include <memory>
#include <vector>

#include "core/executor.hpp"
#include "cpu/decoder/decoder.hpp"
#include "cpu/decoder/weights.hpp"
#include "cpu/kv_cache.hpp"
#include "cpu/sampling_rooms.hpp"
#include "cpu/thread_pool.hpp"
#include "model/generation/generations.hpp"
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
  void choose_tokens(const step& plan, std::span<float> logits);

  std::shared_ptr<const decoder_weights> weights_;
  cpu_executor_options options_;
  thread_pool pool_;
  kv_cache cache_;
  decoder decoder_;
  model::generations generations_;
  sampling_rooms rooms_;
  std::vector<model::wanted_token> wanted_;
  std::vector<model::sampled_token> chosen_;  ///< parallel to wanted_
  std::vector<step_ptr> pending_;
};

}  // namespace octavo::cpu
