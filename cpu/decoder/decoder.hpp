// The forward pass of a decoder over a batch of tokens of any mix of sequences,
// prefill chunks and decodes alike. One description serves every family: what a
// model lacks (biases, norms, caps, windows) is skipped.
//
// Each row's numbers depend on the row's own sequence alone: not on its company,
// on how a prompt was cut into chunks, or on the number of threads, bit by bit.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "cpu/decoder/rope.hpp"
#include "cpu/decoder/weights.hpp"
#include "cpu/kernels/activations.hpp"
#include "cpu/kv_cache.hpp"
#include "cpu/slot_table.hpp"
#include "cpu/thread_pool.hpp"

namespace octavo::cpu {

/// Consecutive tokens of one sequence.
struct batch_sequence {
  const slot* where = nullptr;
  std::int32_t first_position = 0;
  std::uint32_t first_row = 0;
  std::uint32_t rows = 0;
};

struct decoder_batch {
  std::vector<token_id> tokens;           ///< one for each row
  std::vector<batch_sequence> sequences;  ///< cover the rows in order
  std::vector<std::uint32_t> logit_rows;  ///< rows whose logits are wanted, ascending
};

class decoder {
 public:
  /// Weights, pool and cache outlive this.
  decoder(const decoder_weights& weights, thread_pool& pool, kv_cache& cache);

  /// Computes the batch, writes its K and V, and returns the logits, one row of
  /// the vocabulary for each of `logit_rows`. They are valid until the next call
  /// and may be changed.
  [[nodiscard]] std::span<float> forward(const decoder_batch& batch);

 private:
  void embed(const decoder_batch& batch);
  void prepare_angles(const decoder_batch& batch);
  void attend(const decoder_batch& batch, const layer_weights& layer, std::int64_t number);
  void place_heads(const decoder_batch& batch, const layer_weights& layer, std::int64_t number);
  void attend_pages(const decoder_batch& batch, std::int64_t number);
  void gather_pages(const decoder_batch& batch, std::int64_t number);
  void requantize(const std::vector<float>& values, std::size_t width);
  void feed_forward(const layer_weights& layer);
  void normalize(std::span<const float> weight, std::span<const std::uint32_t> rows = {});
  /// A weight, its bias (may be empty), and where the product goes.
  struct product {
    const packed_weights& weight;
    std::span<const float> bias;
    float* out;
  };
  void multiply(std::span<const product> products);
  void order_inputs(std::span<const product> products);
  void multiply_tiles(const product& p, const quantized_rows& input, std::size_t chunk) const;
  void add_to_hidden(std::span<const float> norm);
  [[nodiscard]] std::span<float> compute_logits(const decoder_batch& batch);
  [[nodiscard]] bool slides(std::int64_t number) const;

  const decoder_weights& weights_;
  const model::model_config& config_;
  thread_pool& pool_;
  kv_cache& cache_;
  rope_angles global_angles_;
  rope_angles local_angles_;
  std::size_t rows_ = 0;

  // Row-major scratch, one row for each token.
  std::vector<float> hidden_;
  std::vector<float> normed_;
  std::vector<float> query_, key_, value_, mixed_;
  std::vector<float> gate_, up_;
  std::vector<float> projected_;
  std::vector<float> cosines_, sines_, local_cosines_, local_sines_;
  std::vector<float> logits_;
  quantized_rows quantized_;
  /// The same rows in the order of inputs that a weight wants, by product.
  std::vector<quantized_rows> ordered_;

  /// A run of one sequence's tokens against one key-value head.
  struct attention_item {
    std::uint32_t sequence = 0;
    std::uint32_t first = 0;
    std::uint32_t kv_head = 0;
  };
  std::vector<attention_item> items_;
  std::vector<kv_page> pages_;
  std::vector<std::size_t> page_begin_;
};

}  // namespace octavo::cpu
