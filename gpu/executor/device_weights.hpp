// A decoder's weights on a device: one rank's share of them (model/sharding.hpp), in the
// forms that kernels take. One description for all families; what a family lacks is empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "gpu/executor/device_linear.hpp"
#include "gpu/executor/linear_group.hpp"
#include "gpu/runtime/memory.hpp"
#include "model/config.hpp"
#include "model/container/checkpoint.hpp"
#include "model/sharding.hpp"

namespace octavo::gpu {

struct device_layer {
  device_array<float> attention_norm;
  device_array<float> q_norm, k_norm;       ///< of head_dim; empty where not normed
  device_array<float> post_attention_norm;  ///< of the attention's output; may be empty
  device_array<float> mlp_norm;
  device_array<float> post_mlp_norm;  ///< of the MLP's output; may be empty
  linear_group heads;                 ///< queries, keys, values
  device_linear output;
  linear_group gates;  ///< gate, up
  device_linear down;
};

struct device_weights {
  model::model_config config;
  model::rank_share share;
  /// Rows of the rank's token ids.
  device_table embedding;
  /// The same; no rows where the embedding is the head too.
  device_table head;
  device_array<float> output_norm;
  std::vector<device_layer> layers;

  [[nodiscard]] const device_table& head_table() const { return head.rows == 0 ? embedding : head; }
  /// Bytes on the device.
  [[nodiscard]] std::size_t bytes() const;
};

/// Hears how much is loaded: layers done, of how many.
using load_progress = std::function<void(int done, int total)>;

/// Repacks and uploads the share of rank `rank` of `ranks` to the current device. Reads
/// the mapped file alone, so ranks may load at the same time. Throws input_error for
/// weights that are missing or have no kernel, infeasible_error for an architecture that
/// cannot be run or that the ranks cannot share evenly, device_error where memory ends.
[[nodiscard]] device_weights load_device_weights(const model::checkpoint& source,
                                                 const weight_options& options, int ranks, int rank,
                                                 stream& on, const parallel_for& parallel,
                                                 const load_progress& progress = {});

}  // namespace octavo::gpu
