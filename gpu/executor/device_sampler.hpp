// Chooses a step's tokens on the device that has its logits, so that only their ids, and
// the log-probabilities that are asked for, cross the bus.
#pragma once

#include <array>
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
  /// For up to `rows_max` tokens a step from `vocabulary` logits each, of sequences of up to
  /// `tokens_max` tokens in slots below `slots`. Takes scratch on the current device; the
  /// history that penalties need, and room for logits of several samples, are taken when the
  /// first request asks for them. Nothing ever waits for the device: ranks wait together.
  device_sampler(int rows_max, int vocabulary, int slots, int tokens_max);

  /// Queues the choice of all wanted tokens of a plan from `logits`, [logit rows][vocabulary]
  /// on the device, into `chosen`, [rows_max] there; they come to the host as well. `turn`, 0
  /// or 1, names host memory that the choice before does not use. False, with nothing
  /// done, for what only the host's sampler takes: longer lists of tokens than there is room
  /// for, several samples with penalties that start from one prompt, and penalties that
  /// need tokens which are not known yet.
  [[nodiscard]] bool queue(stream& on, const step& plan, const model::generations& all,
                           std::span<const model::wanted_token> wanted, const float* logits,
                           std::int32_t* chosen, std::size_t turn);

  /// Takes and keeps all that requests can make it take, and queues, for up to `rows` rows of
  /// `logits`, whatever kernels choices need: no choice takes memory afterwards.
  void rehearse(stream& on, const float* logits, std::int32_t* chosen, int rows);

  /// What was queued in that turn, once the stream has got so far.
  void read(std::span<const model::wanted_token> wanted, std::size_t turn,
            std::vector<model::sampled_token>& chosen) const;

 private:
  /// What a slot's history holds.
  struct counted {
    request_id request;
    std::uint16_t sample = 0;
    std::size_t tokens = 0;
  };

  /// A choice's descriptions and results, where the device's copies reach them.
  struct host_memory {
    pinned_array<sampling_row> rows;
    pinned_array<token_bias> biases;
    pinned_array<std::int32_t> tokens, logit_ids;
    pinned_array<std::int32_t> chosen, top_tokens;
    pinned_array<float> logprobs, top_logprobs;
    std::size_t top_max = 0;
  };

  bool describe(const step& plan, const model::generations& all,
                std::span<const model::wanted_token> wanted);
  [[nodiscard]] bool follows(const step& plan, const model::wanted_token& want) const;
  void take_history();
  void take_copies();
  void bring_history(stream& on, const step& plan, const model::generations& all,
                     std::span<const model::wanted_token> wanted);
  void count_anew(stream& on, int slot, const model::sampling_state& state);
  [[nodiscard]] const float* rows_of(stream& on, const step& plan,
                                     std::span<const model::wanted_token> wanted,
                                     const float* logits, host_memory& host);
  const float* expand(stream& on, std::span<const std::int32_t> ids, const float* logits);
  void queue_batch(stream& on, const float* logits, std::int32_t* chosen, host_memory& host);
  void upload_descriptions(stream& on, host_memory& host);
  void download_results(stream& on, std::size_t count, const std::int32_t* chosen,
                        host_memory& host);

  int rows_max_;
  int vocabulary_;
  int slots_;
  sampling_batch batch_;
  device_array<sampling_row> rows_;
  device_array<token_bias> biases_;
  device_array<std::int32_t> tokens_;
  device_array<std::byte> workspace_;
  device_array<std::int32_t> top_tokens_, logit_ids_, new_tokens_;
  device_array<float> logprobs_, top_logprobs_, expanded_;
  device_array<std::uint32_t> history_;
  std::vector<counted> counted_;
  std::array<host_memory, 2> host_;
};

}  // namespace octavo::gpu
