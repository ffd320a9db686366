// A decoder's weights in the form that kernels read: one description for all
// families, in which what a family lacks is empty.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "cpu/kernels/packed_weights.hpp"
#include "cpu/thread_pool.hpp"
#include "model/config.hpp"
#include "model/container/checkpoint.hpp"

namespace octavo::cpu {

/// A linear layer; `bias` is empty where it has none.
struct linear {
  packed_weights weight;
  std::vector<float> bias;
};

struct layer_weights {
  std::vector<float> attention_norm;
  linear q, k, v, output;
  std::vector<float> q_norm, k_norm;       ///< of head_dim; empty where not normed
  std::vector<float> post_attention_norm;  ///< of the attention's output; may be empty
  std::vector<float> mlp_norm;
  linear gate, up, down;
  std::vector<float> post_mlp_norm;  ///< of the MLP's output; may be empty
};

struct decoder_weights {
  model::model_config config;
  packed_weights embedding;
  /// Empty where the embedding is the head too.
  packed_weights head;
  std::vector<float> output_norm;
  std::vector<layer_weights> layers;

  [[nodiscard]] const packed_weights& head_weights() const {
    return head.rows() > 0 ? head : embedding;
  }
  /// Bytes of the packed matrices.
  [[nodiscard]] std::size_t bytes() const;
};

/// Hears how much is loaded: layers done, of how many.
using load_progress = std::function<void(std::size_t done, std::size_t total)>;

/// Repacks a checkpoint, giving mapped pages back as it goes. Throws input_error
/// for weights that are missing or have no kernel, infeasible_error for an
/// architecture that cannot be run.
[[nodiscard]] decoder_weights load_decoder(const model::checkpoint& source, thread_pool& pool,
                                           const load_progress& progress = {});

}  // namespace octavo::cpu
