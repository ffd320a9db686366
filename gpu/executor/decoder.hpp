// The forward pass of one rank over a batch of tokens of any mix of sequences, queued on
// the rank's stream: prefill chunks and decodes alike. One description serves every
// family; what a model lacks is skipped.
//
// The residual stream is float32, what products take and give is 16 bits wide. Ranks of
// a group run the same pass side by side, each on a thread of its own, and meet in the
// communicator twice a layer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "gpu/executor/communicator.hpp"
#include "gpu/executor/device_weights.hpp"
#include "gpu/executor/kv_pools.hpp"
#include "gpu/executor/step_plan.hpp"
#include "gpu/runtime/memory.hpp"
#include "gpu/runtime/stream.hpp"

namespace octavo::gpu {

struct decoder_options {
  dtype type = dtype::float16;     ///< of activations
  dtype kv_type = dtype::float16;  ///< `type` or float8_e4m3
  int ranks = 1;
  int rank = 0;
  step_limits limits;
  bool batch_invariant = false;
  /// Tokens that exist: weights may have rows beyond.
  int vocabulary = 0;
  /// Of several ranks; outlives the decoder.
  communicator* others = nullptr;
  /// As product_context's.
  int dense_tokens_min = lane_dense_tokens_min;
};

class decoder {
 public:
  /// Makes scratch for the largest step on the current device. Weights and pools outlive
  /// it; `plan` is any of the steps' to come.
  decoder(const device_weights& weights, kv_pools& pools, const step_plan& plan,
          const decoder_options& options, stream& on);

  /// Queues a step: computes its rows, writes their K and V, and leaves logits.
  void forward(stream& on, const step_plan& plan, const step_arrays& arrays);

  /// The same for a padded step (step_plan::prepare_padded): the first of its shape runs as
  /// forward() does, as libraries must see products before they can be captured; the second
  /// is captured, and from then on they are launched as one. Of several ranks, with a
  /// communicator that can be captured.
  void forward_as_graph(stream& on, const step_plan& plan, const step_arrays& arrays);

  /// The tokens of the last step, as whoever chooses them on the device writes them here:
  /// what a plan's sources point into. [limits.sequences_max]
  [[nodiscard]] std::int32_t* chosen() { return chosen_.data(); }

  /// [plan.logit_rows()][options.vocabulary], on every rank. Valid until the next step.
  [[nodiscard]] float* logits() { return logits_.data(); }

 private:
  /// Cosines and sines of all positions.
  struct angle_table {
    device_array<float> cosines, sines;
    int pairs = 0;
  };

  /// Does the head's product give the logits as they are to be?
  [[nodiscard]] bool logits_are_whole() const;
  [[nodiscard]] angle_table make_angles(bool local, stream& on) const;
  void reserve_workspace(stream& on);
  void embed_tokens(stream& on, const step_plan& plan, const step_arrays& arrays);
  [[nodiscard]] float* next_partial();
  [[nodiscard]] partial_rows last_partial(int rows);
  void place_heads(stream& on, const step_plan& plan, const step_arrays& arrays,
                   const device_layer& layer, std::int64_t number);
  void attend(stream& on, const step_plan& plan, const step_arrays& arrays,
              const device_layer& layer, std::int64_t number);
  void feed_forward(stream& on, int rows, const device_layer& layer);
  void project(stream& on, const device_linear& by, const void* from, int rows);
  void norm(stream& on, int rows, const void* branch, const device_array<float>& branch_norm,
            const device_array<float>& weight);
  void take_branch(stream& on, const rms_norm_params& p);
  void compute_logits(stream& on, const step_plan& plan, const step_arrays& arrays);

  const device_weights& weights_;
  const model::model_config& config_;
  kv_pools& pools_;
  decoder_options options_;
  product_context products_;

  device_array<std::byte> product_scratch_;
  device_array<int> product_counters_;
  device_array<std::byte> attention_scratch_;
  device_array<std::byte> fp8_codes_;
  device_array<float> fp8_scales_;
  device_array<float> residual_;
  /// Results of a layer's groups: queries, keys and values, and later gate and up.
  device_array<std::uint16_t> grouped_;
  /// What attention, and later the gates, make of them.
  device_array<std::uint16_t> mixed_;
  device_array<std::uint16_t> normed_, branch_;
  /// Of several ranks: partial sums, in turn.
  std::array<device_array<float>, 2> partial_;
  std::size_t turn_ = 0;
  device_array<float> shard_logits_, gathered_logits_, logits_;
  device_array<std::int32_t> chosen_;
  /// Of layers that slide, and of all others.
  angle_table global_angles_, local_angles_;
  /// By rows, and whether any group of layers has wide items; nothing after the first step.
  std::map<std::pair<int, bool>, std::optional<graph>> graphs_;
};

}  // namespace octavo::gpu
