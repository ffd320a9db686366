// Memory, exactly: bytes of KV cache per token, bytes of weights, and how many
// KV blocks remain. Everything is per GPU of a tensor-parallel group.
//
//   auto layout = make_kv_layout(config, kv_dtype::fp16, tp, 16);
//   auto blocks = kv_blocks(80 * GB, 0.9, weight_bytes(config, format, tp).total(),
//                           activation_peak_bytes(config, tp, 2048, 256), layout.block_bytes);
//
// Hybrid models (some layers slide) use one pool of equal blocks and one group
// per layer kind. A pool block holds `block_size` tokens of `unit_layers` layers,
// where unit_layers is the greatest common divisor of the two groups' layer
// counts; a group therefore takes a whole number of pool blocks for each
// block_size tokens, with no padding, and blocks that slide out of a window go
// back to the pool. A sliding layer is billed for its window and never twice.
// With one kind of layer there is one group that takes one pool block.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/config.hpp"
#include "model/formats.hpp"

namespace octavo::model {

/// KV bytes of one token in one layer on one GPU, scales included. Sliding and full layers cost
/// the same per token; they differ in how many tokens they keep.
[[nodiscard]] std::int64_t kv_bytes_per_token_layer(const model_config& config, kv_dtype dtype,
                                                    int tp);

/// KV bytes of one token in all layers on one GPU, while no window is exceeded.
[[nodiscard]] std::int64_t kv_bytes_per_token(const model_config& config, kv_dtype dtype, int tp);

/// KV bytes that one sequence of `context` tokens keeps on one GPU: full layers
/// keep all of it, sliding layers at most their window.
[[nodiscard]] std::int64_t kv_bytes_at(const model_config& config, kv_dtype dtype, int tp,
                                       std::int64_t context);

/// Layers whose KV is allocated together.
struct kv_group {
  std::int64_t layers = 0;
  /// Tokens kept; 0 = all.
  std::int64_t window = 0;
  /// Pool blocks taken for each block_size tokens.
  std::int64_t pool_blocks = 1;
};

struct kv_layout {
  std::int64_t block_size = 0;
  /// Bytes of one pool block on one GPU.
  std::int64_t block_bytes = 0;
  std::vector<kv_group> groups;
};

/// The blocks of a model's KV cache (the convention is at the top of this file).
[[nodiscard]] kv_layout make_kv_layout(const model_config& config, kv_dtype dtype, int tp,
                                       std::int64_t block_size);

/// Pool blocks that one sequence of `context` tokens holds between two steps.
/// A window that starts inside a block keeps that block.
[[nodiscard]] std::int64_t pool_blocks_at(const kv_layout& layout, std::int64_t context);

/// Bytes of weights on one GPU.
struct weight_memory {
  /// Quantized linear layers with their scales and zeros.
  std::int64_t linear = 0;
  /// Embedding and output head, split by vocabulary rows, 16 bits.
  std::int64_t embeddings = 0;
  /// Norms and biases, 16 bits.
  std::int64_t small = 0;

  [[nodiscard]] std::int64_t total() const { return linear + embeddings + small; }
};

/// Bytes of the weights under tensor parallelism `tp`: projections are split,
/// norms and the biases added after an all-reduce are copied, key-value
/// projections are copied where heads are. Throws as check_tensor_parallel.
[[nodiscard]] weight_memory weight_bytes(const model_config& config, weight_format format, int tp);

/// Bytes of a K x N weight matrix with its scales and zeros.
[[nodiscard]] std::int64_t matrix_bytes(std::int64_t k, std::int64_t n, weight_format format);

/// Estimated peak of activations beside the weights, in bytes: the residual
/// stream and the widest MLP of a full step, logits in fp32 with a sorted copy
/// for sampling, and a fixed share for the driver's context and workspaces.
[[nodiscard]] std::int64_t activation_peak_bytes(const model_config& config, int tp,
                                                 std::int64_t max_num_batched_tokens,
                                                 std::int64_t max_num_seqs);

struct kv_block_budget {
  std::int64_t blocks = 0;
  /// The sum, ready to print.
  std::string arithmetic;
};

/// KV blocks that fit: (total x utilization - weights - activations) / block.
/// Bytes. Throws infeasible_error, arithmetic shown, where not one block fits,
/// and input_error where an argument is outside its range.
[[nodiscard]] kv_block_budget kv_blocks(std::int64_t total_memory, double utilization,
                                        std::int64_t weight_bytes, std::int64_t activation_peak,
                                        std::int64_t block_bytes);

}  // namespace octavo::model
