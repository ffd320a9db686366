// Chooses a step's tokens on the device that has its logits, so that only their ids, and
// the log-probabilities that are asked for, cross the bus.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/kernels/sampling/sampling_batch.hpp"
#include "gpu/runtime/memory.hpp"
#include "gpu/runtime/stream.hpp"
#include "model/generation/generations.hpp"

namespace octavo::gpu {

class device_sampler {
 public:
  /// For up to `rows_max` tokens a step from `vocabulary` logits each, of sequences in
  /// slots below `slots`. Takes scratch on the current device; the history that penalties
  /// need is taken when the first request asks for one.
  device_sampler(int rows_max, int vocabulary, int slots);

  /// Chooses all wanted tokens of a plan from `logits`, [logit rows][vocabulary] on the
  /// device, and waits. False, with nothing done, for what only the host's sampler takes:
  /// longer lists of tokens than there is room for, and several samples with penalties
  /// that start from one prompt.
  [[nodiscard]] bool choose(stream& on, const step& plan, const model::generations& all,
                            std::span<const model::wanted_token> wanted, const float* logits,
                            std::vector<model::sampled_token>& chosen);

 private:
  /// What a slot's history holds.
  struct counted {
    request_id request;
    std::uint16_t sample = 0;
    std::size_t tokens = 0;
  };

  bool describe(const step& plan, const model::generations& all,
                std::span<const model::wanted_token> wanted);
  void bring_history(stream& on, const step& plan, const model::generations& all,
                     std::span<const model::wanted_token> wanted);
  [[nodiscard]] const float* rows_of(stream& on, const step& plan,
                                     std::span<const model::wanted_token> wanted,
                                     const float* logits);
  void read(std::span<const model::wanted_token> wanted, const step& plan,
            const model::generations& all, std::vector<model::sampled_token>& chosen) const;

  int rows_max_;
  int vocabulary_;
  int slots_;
  sampling_batch batch_;
  device_array<sampling_row> rows_;
  device_array<token_bias> biases_;
  device_array<std::int32_t> tokens_;
  device_array<std::byte> workspace_;
  device_array<std::int32_t> chosen_, top_tokens_, logit_ids_, new_tokens_;
  device_array<float> logprobs_, top_logprobs_, expanded_;
  device_array<std::uint32_t> history_;
  std::vector<counted> counted_;
  pinned_array<std::int32_t> host_chosen_, host_top_tokens_;
  pinned_array<float> host_logprobs_, host_top_logprobs_;
};

}  // namespace octavo::gpu
