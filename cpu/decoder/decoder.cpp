// The forward pass: see decoder.hpp.
#include "cpu/decoder/decoder.hpp"

#include <algorithm>
#include <cmath>

#include "cpu/kernels/attention.hpp"
#include "cpu/kernels/elementwise.hpp"
#include "cpu/kernels/matmul.hpp"

namespace octavo::cpu {
namespace {

/// Tiles of 8 output rows that a thread takes at a time.
constexpr std::size_t tiles_per_chunk = 8;
/// Tokens that a thread attends for at a time.
constexpr std::uint32_t tokens_per_item = 16;

std::size_t chunks_of(const packed_weights& weight) {
  return (weight.row_tiles() + tiles_per_chunk - 1) / tiles_per_chunk;
}

float attention_scale(const model::model_config& c) {
  if (c.attention_scale > 0) return static_cast<float>(c.attention_scale);
  return static_cast<float>(1 / std::sqrt(static_cast<double>(c.head_dim)));
}

// Norms each head of a row in place.
void norm_heads(std::vector<float>& rows, std::size_t row, std::size_t heads, std::size_t dim,
                const std::vector<float>& weight, float epsilon) {
  if (weight.empty()) return;
  for (std::size_t h = 0; h < heads; ++h) {
    float* head = rows.data() + (row * heads + h) * dim;
    rms_norm(head, weight.data(), dim, epsilon, head);
  }
}

}  // namespace

decoder::decoder(const decoder_weights& weights, thread_pool& pool, kv_cache& cache)
    : weights_(weights),
      config_(weights.config),
      pool_(pool),
      cache_(cache),
      global_angles_(weights.config, false),
      local_angles_(weights.config, true) {
  attention_shape shape;
  shape.head_dim = static_cast<std::size_t>(config_.head_dim);
  check_attention_shape(shape);
}

bool decoder::slides(std::int64_t number) const {
  return !config_.slides.empty() && config_.slides[static_cast<std::size_t>(number)];
}

std::span<float> decoder::forward(const decoder_batch& batch) {
  rows_ = batch.tokens.size();
  embed(batch);
  prepare_angles(batch);
  for (std::int64_t number = 0; number < config_.layers; ++number) {
    const layer_weights& layer = weights_.layers[static_cast<std::size_t>(number)];
    attend(batch, layer, number);
    feed_forward(layer);
  }
  return compute_logits(batch);
}

void decoder::embed(const decoder_batch& batch) {
  const auto width = static_cast<std::size_t>(config_.hidden_size);
  const auto factor = static_cast<float>(config_.embedding_scale);
  hidden_.resize(rows_ * width);
  pool_.run(rows_, [&](std::size_t row) {
    float* out = hidden_.data() + row * width;
    weights_.embedding.read_row(static_cast<std::size_t>(batch.tokens[row]), {out, width});
    if (factor != 1) scale(out, factor, width, out);
  });
}

void decoder::prepare_angles(const decoder_batch& batch) {
  const std::size_t pairs = global_angles_.dimensions() / 2;
  for (auto* angles : {&cosines_, &sines_, &local_cosines_, &local_sines_}) {
    angles->resize(rows_ * pairs);
  }
  for (const batch_sequence& s : batch.sequences) {
    for (std::uint32_t i = 0; i < s.rows; ++i) {
      const std::size_t at = (s.first_row + i) * pairs;
      const std::int64_t position = s.first_position + static_cast<std::int64_t>(i);
      global_angles_.at(position, std::span{cosines_}.subspan(at, pairs),
                        std::span{sines_}.subspan(at, pairs));
      local_angles_.at(position, std::span{local_cosines_}.subspan(at, pairs),
                       std::span{local_sines_}.subspan(at, pairs));
    }
  }
}

// Norms rows of hidden_ (all, or those given) and quantizes them for products.
void decoder::normalize(std::span<const float> weight, std::span<const std::uint32_t> rows) {
  const auto width = static_cast<std::size_t>(config_.hidden_size);
  const std::size_t count = rows.empty() ? rows_ : rows.size();
  normed_.resize(count * width);
  quantized_.resize(count, width);
  pool_.run(count, [&](std::size_t i) {
    const std::size_t from = rows.empty() ? i : rows[i];
    float* out = normed_.data() + i * width;
    rms_norm(hidden_.data() + from * width, weight.data(), width,
             static_cast<float>(config_.norm_epsilon), out);
    quantized_.quantize(i, out);
  });
}

// Several products that share the input in normed_ and quantized_, as one piece of
// work, so that threads meet once.
void decoder::multiply(std::span<const product> products) {
  order_inputs(products);
  std::size_t chunks = 0;
  for (const product& p : products) chunks += chunks_of(p.weight);
  pool_.run(chunks, [&](std::size_t chunk) {
    std::size_t which = 0;
    while (chunk >= chunks_of(products[which].weight)) chunk -= chunks_of(products[which++].weight);
    const product& p = products[which];
    multiply_tiles(p, p.weight.input_order().empty() ? quantized_ : ordered_[which], chunk);
  });
}

// Quantizes the input once more for weights that put their inputs into an order of
// their own (GPTQ with desc_act).
void decoder::order_inputs(std::span<const product> products) {
  if (ordered_.size() < products.size()) ordered_.resize(products.size());
  for (std::size_t which = 0; which < products.size(); ++which) {
    const packed_weights& weight = products[which].weight;
    const auto order = weight.input_order();
    if (order.empty()) continue;
    ordered_[which].resize(quantized_.rows(), weight.inputs());
    pool_.run(quantized_.rows(), [&](std::size_t row) {
      ordered_[which].quantize_ordered(row, &normed_[row * weight.columns()], order);
    });
  }
}

void decoder::multiply_tiles(const product& p, const quantized_rows& input,
                             std::size_t chunk) const {
  const packed_weights& w = p.weight;
  const std::size_t rows = quantized_.rows();
  const std::size_t first = chunk * tiles_per_chunk;
  const std::size_t tiles = std::min(tiles_per_chunk, w.row_tiles() - first);
  if (w.takes_floats()) {
    matmul(w, float_rows{normed_.data(), rows, w.columns()}, first, tiles, p.out, w.rows());
  } else {
    matmul(w, input, first, tiles, p.out, w.rows());
  }
  if (p.bias.empty()) return;
  const std::size_t begin = first * tile_rows;
  const std::size_t count = std::min(tiles * tile_rows, w.rows() - begin);
  for (std::size_t row = 0; row < rows; ++row) {
    float* out = p.out + row * w.rows() + begin;
    add(out, p.bias.data() + begin, count, out);
  }
}

// Norms and turns queries and keys, and puts keys and values into their pages.
void decoder::place_heads(const decoder_batch& batch, const layer_weights& layer,
                          std::int64_t number) {
  const auto dim = static_cast<std::size_t>(config_.head_dim);
  const auto heads = static_cast<std::size_t>(config_.heads);
  const auto kv_heads = static_cast<std::size_t>(config_.kv_heads);
  const std::size_t pairs = global_angles_.dimensions() / 2;
  const bool local = slides(number);
  const auto& cosines = local ? local_cosines_ : cosines_;
  const auto& sines = local ? local_sines_ : sines_;
  const rope_pairs style = config_.rope.interleaved ? rope_pairs::neighbors : rope_pairs::halves;
  const auto epsilon = static_cast<float>(config_.norm_epsilon);
  const std::size_t group = cache_.group_of(number);
  pool_.run(batch.sequences.size(), [&](std::size_t which) {
    const batch_sequence& s = batch.sequences[which];
    for (std::uint32_t i = 0; i < s.rows; ++i) {
      const std::size_t row = s.first_row + i;
      norm_heads(query_, row, heads, dim, layer.q_norm, epsilon);
      norm_heads(key_, row, kv_heads, dim, layer.k_norm, epsilon);
      const float* cosine = cosines.data() + row * pairs;
      const float* sine = sines.data() + row * pairs;
      for (std::size_t h = 0; h < heads; ++h) {
        rope(query_.data() + (row * heads + h) * dim, cosine, sine, pairs, style);
      }
      const auto position = s.first_position + static_cast<std::int32_t>(i);
      const kv_page page = cache_.at(number, s.where->tables[group], s.where->first[group],
                                     position / kv_cache::block_size);
      for (std::size_t h = 0; h < kv_heads; ++h) {
        float* key = key_.data() + (row * kv_heads + h) * dim;
        rope(key, cosine, sine, pairs, style);
        write_kv(page, h, static_cast<std::size_t>(position % kv_cache::block_size), dim, key,
                 value_.data() + (row * kv_heads + h) * dim);
      }
    }
  });
}

void decoder::attend(const decoder_batch& batch, const layer_weights& layer, std::int64_t number) {
  query_.resize(rows_ * static_cast<std::size_t>(config_.query_size()));
  key_.resize(rows_ * static_cast<std::size_t>(config_.kv_size()));
  value_.resize(key_.size());
  normalize(layer.attention_norm);
  multiply(std::array{product{layer.q.weight, layer.q.bias, query_.data()},
                      product{layer.k.weight, layer.k.bias, key_.data()},
                      product{layer.v.weight, layer.v.bias, value_.data()}});
  place_heads(batch, layer, number);
  attend_pages(batch, number);
  requantize(mixed_, static_cast<std::size_t>(config_.query_size()));
  projected_.resize(rows_ * static_cast<std::size_t>(config_.hidden_size));
  multiply(std::array{product{layer.output.weight, layer.output.bias, projected_.data()}});
  add_to_hidden(layer.post_attention_norm);
}

// Every (sequence, key-value head, run of tokens) is a piece of work of its own.
void decoder::attend_pages(const decoder_batch& batch, std::int64_t number) {
  const auto dim = static_cast<std::size_t>(config_.head_dim);
  const auto kv_heads = static_cast<std::size_t>(config_.kv_heads);
  const auto stride = static_cast<std::size_t>(config_.query_size());
  attention_shape shape;
  shape.head_dim = dim;
  shape.group = static_cast<std::size_t>(config_.heads / config_.kv_heads);
  shape.scale = attention_scale(config_);
  shape.window = slides(number) ? static_cast<std::size_t>(config_.sliding_window) : 0;
  shape.soft_cap = static_cast<float>(config_.attention_soft_cap);
  gather_pages(batch, number);
  items_.clear();
  for (std::uint32_t which = 0; which < batch.sequences.size(); ++which) {
    for (std::uint32_t first = 0; first < batch.sequences[which].rows; first += tokens_per_item) {
      for (std::uint32_t h = 0; h < kv_heads; ++h) items_.push_back({which, first, h});
    }
  }
  mixed_.resize(query_.size());
  pool_.run(items_.size(), [&](std::size_t i) {
    const attention_item& item = items_[i];
    const batch_sequence& s = batch.sequences[item.sequence];
    const std::size_t offset =
        (s.first_row + item.first) * stride + item.kv_head * shape.group * dim;
    const std::size_t group = cache_.group_of(number);
    attention_work work;
    work.q = query_.data() + offset;
    work.q_stride = stride;
    work.first_position = static_cast<std::size_t>(s.first_position) + item.first;
    work.tokens = std::min(tokens_per_item, s.rows - item.first);
    work.pages = pages_.data() + page_begin_[item.sequence];
    work.first_page = static_cast<std::size_t>(s.where->first[group]);
    work.kv_head = item.kv_head;
    work.out = mixed_.data() + offset;
    work.out_stride = stride;
    cpu::attend(shape, work);
  });
}

// The pages of each sequence in this layer, one sequence behind another.
void decoder::gather_pages(const decoder_batch& batch, std::int64_t number) {
  const std::size_t group = cache_.group_of(number);
  pages_.clear();
  page_begin_.clear();
  for (const batch_sequence& s : batch.sequences) {
    page_begin_.push_back(pages_.size());
    const std::int32_t first = s.where->first[group];
    const std::int32_t end =
        (s.first_position + static_cast<std::int32_t>(s.rows) - 1) / kv_cache::block_size + 1;
    for (std::int32_t index = first; index < end; ++index) {
      pages_.push_back(cache_.at(number, s.where->tables[group], first, index));
    }
  }
}

// Makes `values`, `width` wide, the input of the next products.
void decoder::requantize(const std::vector<float>& values, std::size_t width) {
  normed_.assign(values.begin(), values.end());
  quantized_.resize(rows_, width);
  pool_.run(rows_, [&](std::size_t row) { quantized_.quantize(row, &normed_[row * width]); });
}

void decoder::feed_forward(const layer_weights& layer) {
  const auto width = static_cast<std::size_t>(config_.intermediate_size);
  normalize(layer.mlp_norm);
  gate_.resize(rows_ * width);
  up_.resize(rows_ * width);
  multiply(std::array{product{layer.gate.weight, layer.gate.bias, gate_.data()},
                      product{layer.up.weight, layer.up.bias, up_.data()}});
  const bool gelu = config_.mlp_activation == model::activation::gelu_tanh;
  normed_.resize(rows_ * width);
  quantized_.resize(rows_, width);
  pool_.run(rows_, [&](std::size_t row) {
    float* out = normed_.data() + row * width;
    const float* gate = gate_.data() + row * width;
    const float* up = up_.data() + row * width;
    gelu ? gelu_multiply(gate, up, width, out) : silu_multiply(gate, up, width, out);
    quantized_.quantize(row, out);
  });
  multiply(std::array{product{layer.down.weight, layer.down.bias, projected_.data()}});
  add_to_hidden(layer.post_mlp_norm);
}

void decoder::add_to_hidden(std::span<const float> norm) {
  const auto width = static_cast<std::size_t>(config_.hidden_size);
  pool_.run(rows_, [&](std::size_t row) {
    float* branch = projected_.data() + row * width;
    float* hidden = hidden_.data() + row * width;
    if (!norm.empty()) {
      rms_norm(branch, norm.data(), width, static_cast<float>(config_.norm_epsilon), branch);
    }
    add(hidden, branch, width, hidden);
  });
}

std::span<float> decoder::compute_logits(const decoder_batch& batch) {
  if (batch.logit_rows.empty()) return {};
  normalize(weights_.output_norm, batch.logit_rows);
  const auto width = static_cast<std::size_t>(config_.vocab_size);
  logits_.resize(batch.logit_rows.size() * width);
  multiply(std::array{product{weights_.head_weights(), {}, logits_.data()}});
  if (config_.final_soft_cap > 0) {
    const auto cap = static_cast<float>(config_.final_soft_cap);
    pool_.run(batch.logit_rows.size(), [&](std::size_t row) {
      soft_cap(&logits_[row * width], cap, width, &logits_[row * width]);
    });
  }
  return logits_;
}

}  // namespace octavo::cpu
