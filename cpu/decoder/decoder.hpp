// The forward pass of a decoder over a batch of tokens of any mix of sequences,
// prefill chunks and decodes alike. One description serves every family: what a
// model lacks (biases, norms, caps, windows) is skipped.
//
// The ranks of a tensor-parallel group are computed here side by side: queries,
// keys, values and the MLP's inner rows of all ranks stand in one row, one rank's
// share behind another, and of the sums over ranks each rank has a buffer of its
// own, added up in rank order. One rank alone is the usual case, not another path.
//
// Each row's numbers depend on the row's own sequence alone: not on its company,
// on how a prompt was cut into chunks, or on the number of threads, bit by bit.
// They do depend on the number of ranks, in the last digits.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "cpu/decoder/weights.hpp"
#include "cpu/kernels/activations.hpp"
#include "cpu/kv_cache.hpp"
#include "cpu/thread_pool.hpp"
#include "model/generation/step_batch.hpp"
#include "model/rope_angles.hpp"

namespace octavo::cpu {

using model::batch_sequence;
using model::decoder_batch;
using model::slot;

class decoder {
 public:
  /// Weights, pool and cache outlive this. The cache is one for the weights' ranks.
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
  void feed_forward(const layer_weights& layer, std::int64_t number);
  void normalize(std::span<const float> weight, std::initializer_list<std::size_t> terms,
                 std::span<const std::uint32_t> rows = {});
  void take_inputs(std::size_t rows, std::size_t width, std::initializer_list<std::size_t> terms,
                   std::size_t ranks = 1);
  void quantize_inputs(std::size_t row);
  /// A weight and its bias (may be empty), which of parts_ it takes, and
  /// where the product goes: `stride` floats from a row to the next.
  struct product {
    const packed_weights& weight;
    std::span<const float> bias;
    std::size_t part = 0;
    float* out = nullptr;
    std::size_t stride = 0;
  };
  void multiply();
  void multiply_by_rank(const layer_weights& layer, linear rank_weights::*member, std::size_t part,
                        std::vector<float>& out, std::size_t width);
  void sum_by_rank(const layer_weights& layer, linear rank_weights::*member);
  void order_inputs();
  void multiply_tiles(const product& p, const quantized_rows& input, std::size_t chunk) const;
  void add_to_hidden(std::span<const float> norm);
  [[nodiscard]] std::span<float> compute_logits(const decoder_batch& batch);
  void refine_likely_logits(std::size_t rows);
  [[nodiscard]] bool slides(std::int64_t number) const;

  const decoder_weights& weights_;
  const model::model_config& config_;
  std::size_t ranks_;
  std::size_t kv_heads_;  ///< of one rank
  thread_pool& pool_;
  kv_cache& cache_;
  model::rope_angles global_angles_;
  model::rope_angles local_angles_;
  std::size_t rows_ = 0;

  // Row-major scratch, one row for each token.
  std::vector<float> hidden_;
  std::vector<float> query_, key_, value_, mixed_;
  std::vector<float> gate_, up_;
  /// A rank's rows behind another's.
  std::vector<float> projected_;
  std::vector<float> cosines_, sines_, local_cosines_, local_sines_;
  std::vector<float> logits_;
  std::vector<std::vector<std::uint32_t>> likely_;  ///< ids of each row's likeliest logits

  /// The input of the next products: rows of floats, and the runs of columns that
  /// products take of it, quantized.
  std::vector<float> inputs_;
  std::size_t input_width_ = 0;
  struct input_part {
    std::size_t first_column = 0;
    quantized_rows rows;
  };
  std::vector<input_part> parts_;
  std::vector<product> products_;
  /// A part of the input in the order that a weight wants, by product.
  std::vector<quantized_rows> ordered_;

  /// A run of one sequence's tokens against one key-value head of a rank.
  struct attention_item {
    std::uint32_t sequence = 0;
    std::uint32_t first = 0;
    std::uint32_t rank = 0;
    std::uint32_t kv_head = 0;
  };
  std::vector<attention_item> items_;
  std::vector<kv_page> pages_;
  std::vector<std::size_t> page_begin_;
};

}  // namespace octavo::cpu
