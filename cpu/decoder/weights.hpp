// A decoder's weights in the form that kernels read: one description for all
// families, in which what a family lacks is empty, and for tensor-parallel groups
// of any size, of which one rank alone is the usual one (model/sharding.hpp).
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

/// One rank's share of a layer. Biases of `output` and `down` are rank 0's.
struct rank_weights {
  linear q, k, v, output;
  linear gate, up, down;
};

struct layer_weights {
  std::vector<float> attention_norm;
  std::vector<float> q_norm, k_norm;       ///< of head_dim; empty where not normed
  std::vector<float> post_attention_norm;  ///< of the attention's output; may be empty
  std::vector<float> mlp_norm;
  std::vector<float> post_mlp_norm;  ///< of the MLP's output; may be empty
  std::vector<rank_weights> ranks;
};

struct decoder_weights {
  model::model_config config;
  /// By rank: each the rows of a run of token ids.
  std::vector<packed_weights> embedding;
  /// The same; empty where the embedding is the head too.
  std::vector<packed_weights> head;
  std::vector<float> output_norm;
  std::vector<layer_weights> layers;

  /// Ranks of the tensor-parallel group that the weights are cut for.
  [[nodiscard]] int ranks() const { return static_cast<int>(embedding.size()); }
  [[nodiscard]] const std::vector<packed_weights>& head_weights() const {
    return head.empty() ? embedding : head;
  }
  /// Bytes of the packed matrices of all ranks.
  [[nodiscard]] std::size_t bytes() const;
};

/// Hears how much is loaded: layers done, of how many.
using load_progress = std::function<void(std::size_t done, std::size_t total)>;

/// Repacks a checkpoint for a tensor-parallel group of so many ranks, giving mapped
/// pages back as it goes. Throws input_error for weights that are missing or have
/// no kernel, infeasible_error for an architecture that cannot be run or that the
/// ranks cannot share evenly.
[[nodiscard]] decoder_weights load_decoder(const model::checkpoint& source, thread_pool& pool,
                                           const load_progress& progress = {},
                                           int tensor_parallel_size = 1);

}  // namespace octavo::cpu
