// The forward pass: see decoder.hpp.
#include "cpu/decoder/decoder.hpp"

#include <algorithm>
#include <cmath>

#include "cpu/decoder/likely_logits.hpp"
#include "cpu/kernels/attention.hpp"
#include "cpu/kernels/elementwise.hpp"
#include "cpu/kernels/matmul.hpp"

namespace octavo::cpu {
namespace {

/// Tiles of 8 output rows that a thread takes at a time.
constexpr std::size_t tiles_per_chunk = 8;
/// Tokens that a thread attends for at a time.
constexpr std::uint32_t tokens_per_item = 16;

// How many 8-bit terms (activations.hpp) the inputs of a kind of weight are rounded to.
// One everywhere costs SmolLM2-135M 0.0036 of mean KL divergence from float32 and moves
// the likeliest token of 3.8 % of positions (bench/reference/compare_transformers.py).
// A quarter of that comes of the head's inputs, whose likeliest logits are computed again
// without rounding, and another of the values', which take few products. The MLPs make
// two fifths, nearly half of it in the last tenth of the layers, behind which little
// evens it out. What is left is spread over products whose second term would cost more
// time.
constexpr std::size_t plain_terms = 1;
constexpr std::size_t value_terms = 2;

// The logits that are computed again, of each row: those that have more than about a
// hundredth of the likeliest token's probability.
constexpr float likely_margin = 5;
constexpr std::size_t likely_max = 128;
/// How many of them a thread takes at a time.
constexpr std::size_t likely_per_chunk = 16;

std::size_t mlp_terms(std::int64_t number, std::int64_t layers) {
  return number < layers - (layers + 9) / 10 ? 1 : 2;
}

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
      ranks_(static_cast<std::size_t>(weights.ranks())),
      kv_heads_(static_cast<std::size_t>(model::kv_heads_per_gpu(config_, weights.ranks()))),
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
    feed_forward(layer, number);
  }
  return compute_logits(batch);
}

void decoder::embed(const decoder_batch& batch) {
  const auto width = static_cast<std::size_t>(config_.hidden_size);
  const auto factor = static_cast<float>(config_.embedding_scale);
  hidden_.resize(rows_ * width);
  pool_.run(rows_, [&](std::size_t row) {
    float* out = hidden_.data() + row * width;
    const auto token = static_cast<std::size_t>(batch.tokens[row]);
    const std::size_t of_rank = weights_.embedding[0].rows();
    weights_.embedding[token / of_rank].read_row(token % of_rank, {out, width});
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

// Makes room for the next products' input: for each of `terms` as many parts of that
// many terms as there are ranks to share the columns.
void decoder::take_inputs(std::size_t rows, std::size_t width,
                          std::initializer_list<std::size_t> terms, std::size_t ranks) {
  input_width_ = width;
  inputs_.resize(rows * width);
  parts_.resize(terms.size() * ranks);
  std::size_t part = 0;
  for (const std::size_t count : terms) {
    for (std::size_t rank = 0; rank < ranks; ++rank, ++part) {
      parts_[part].first_column = rank * (width / ranks);
      parts_[part].rows.resize(rows, width / ranks, count);
    }
  }
}

void decoder::quantize_inputs(std::size_t row) {
  const float* from = inputs_.data() + row * input_width_;
  for (input_part& part : parts_) part.rows.quantize(row, from + part.first_column);
}

// Norms rows of hidden_ (all, or those given) and quantizes them for products, once
// with each of these numbers of terms.
void decoder::normalize(std::span<const float> weight, std::initializer_list<std::size_t> terms,
                        std::span<const std::uint32_t> rows) {
  const auto width = static_cast<std::size_t>(config_.hidden_size);
  const std::size_t count = rows.empty() ? rows_ : rows.size();
  take_inputs(count, width, terms);
  pool_.run(count, [&](std::size_t i) {
    const std::size_t from = rows.empty() ? i : rows[i];
    rms_norm(hidden_.data() + from * width, weight.data(), width,
             static_cast<float>(config_.norm_epsilon), inputs_.data() + i * width);
    quantize_inputs(i);
  });
}

// The products in products_, which share the input, as one piece of work, so that
// threads meet once.
void decoder::multiply() {
  order_inputs();
  std::size_t chunks = 0;
  for (const product& p : products_) chunks += chunks_of(p.weight);
  pool_.run(chunks, [&](std::size_t chunk) {
    std::size_t which = 0;
    while (chunk >= chunks_of(products_[which].weight)) {
      chunk -= chunks_of(products_[which++].weight);
    }
    const product& p = products_[which];
    const bool plain = p.weight.input_order().empty();
    multiply_tiles(p, plain ? parts_[p.part].rows : ordered_[which], chunk);
  });
  products_.clear();
}

// Quantizes the input once more for weights that put their inputs into an order of
// their own (GPTQ with desc_act).
void decoder::order_inputs() {
  if (ordered_.size() < products_.size()) ordered_.resize(products_.size());
  for (std::size_t which = 0; which < products_.size(); ++which) {
    const packed_weights& weight = products_[which].weight;
    const auto order = weight.input_order();
    if (order.empty()) continue;
    const input_part& part = parts_[products_[which].part];
    const float* from = inputs_.data() + part.first_column;
    const std::size_t rows = part.rows.rows();
    ordered_[which].resize(rows, weight.inputs(), part.rows.terms());
    pool_.run(rows, [&](std::size_t row) {
      ordered_[which].quantize_ordered(row, from + row * input_width_, order);
    });
  }
}

void decoder::multiply_tiles(const product& p, const quantized_rows& input,
                             std::size_t chunk) const {
  const packed_weights& w = p.weight;
  const std::size_t first = chunk * tiles_per_chunk;
  const std::size_t tiles = std::min(tiles_per_chunk, w.row_tiles() - first);
  if (w.takes_floats()) {
    const float* from = inputs_.data() + parts_[p.part].first_column;
    matmul(w, float_rows{from, input.rows(), input_width_}, first, tiles, p.out, p.stride);
  } else {
    matmul(w, input, first, tiles, p.out, p.stride);
  }
  if (p.bias.empty()) return;
  const std::size_t begin = first * tile_rows;
  const std::size_t count = std::min(tiles * tile_rows, w.rows() - begin);
  for (std::size_t row = 0; row < input.rows(); ++row) {
    float* out = p.out + row * p.stride + begin;
    add(out, p.bias.data() + begin, count, out);
  }
}

// Adds each rank's product of `part`, the whole input; rows of `out` are `width` wide and
// hold one rank's outputs behind another's.
void decoder::multiply_by_rank(const layer_weights& layer, linear rank_weights::*member,
                               std::size_t part, std::vector<float>& out, std::size_t width) {
  out.resize(rows_ * width);
  float* to = out.data();
  for (const rank_weights& rank : layer.ranks) {
    const linear& of = rank.*member;
    products_.push_back({of.weight, of.bias, part, to, width});
    to += of.weight.rows();
  }
}

// Multiplies each rank's part of the input; the products are summed later.
void decoder::sum_by_rank(const layer_weights& layer, linear rank_weights::*member) {
  const auto width = static_cast<std::size_t>(config_.hidden_size);
  projected_.resize(ranks_ * rows_ * width);
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    const linear& of = layer.ranks[rank].*member;
    products_.push_back({of.weight, of.bias, rank, &projected_[rank * rows_ * width], width});
  }
  multiply();
}

// Norms and turns queries and keys, and puts keys and values into their pages.
void decoder::place_heads(const decoder_batch& batch, const layer_weights& layer,
                          std::int64_t number) {
  const auto dim = static_cast<std::size_t>(config_.head_dim);
  const auto heads = static_cast<std::size_t>(config_.heads);
  const std::size_t kv_heads = ranks_ * kv_heads_;
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
      for (std::size_t h = 0; h < kv_heads; ++h) {
        const kv_page page = cache_.at(h / kv_heads_, number, s.where->tables[group],
                                       s.where->first[group], position / kv_cache::block_size);
        float* key = key_.data() + (row * kv_heads + h) * dim;
        rope(key, cosine, sine, pairs, style);
        write_kv(page, h % kv_heads_, static_cast<std::size_t>(position % kv_cache::block_size),
                 dim, key, value_.data() + (row * kv_heads + h) * dim);
      }
    }
  });
}

void decoder::attend(const decoder_batch& batch, const layer_weights& layer, std::int64_t number) {
  const auto width = static_cast<std::size_t>(config_.query_size());
  const std::size_t kv_width = ranks_ * kv_heads_ * static_cast<std::size_t>(config_.head_dim);
  normalize(layer.attention_norm, {plain_terms, value_terms});
  multiply_by_rank(layer, &rank_weights::q, 0, query_, width);
  multiply_by_rank(layer, &rank_weights::k, 0, key_, kv_width);
  multiply_by_rank(layer, &rank_weights::v, 1, value_, kv_width);
  multiply();
  place_heads(batch, layer, number);
  attend_pages(batch, number);
  take_inputs(rows_, width, {plain_terms}, ranks_);
  pool_.run(rows_, [&](std::size_t row) {
    std::copy_n(&mixed_[row * width], width, &inputs_[row * width]);
    quantize_inputs(row);
  });
  sum_by_rank(layer, &rank_weights::output);
  add_to_hidden(layer.post_attention_norm);
}

// Every (sequence, key-value head, run of tokens) is a piece of work of its own.
void decoder::attend_pages(const decoder_batch& batch, std::int64_t number) {
  const auto dim = static_cast<std::size_t>(config_.head_dim);
  const auto stride = static_cast<std::size_t>(config_.query_size());
  attention_shape shape;
  shape.head_dim = dim;
  shape.group = static_cast<std::size_t>(config_.heads) / (ranks_ * kv_heads_);
  shape.scale = attention_scale(config_);
  shape.window = slides(number) ? static_cast<std::size_t>(config_.sliding_window) : 0;
  shape.soft_cap = static_cast<float>(config_.attention_soft_cap);
  gather_pages(batch, number);
  items_.clear();
  for (std::uint32_t which = 0; which < batch.sequences.size(); ++which) {
    for (std::uint32_t first = 0; first < batch.sequences[which].rows; first += tokens_per_item) {
      for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
        for (std::uint32_t h = 0; h < kv_heads_; ++h) items_.push_back({which, first, rank, h});
      }
    }
  }
  mixed_.resize(query_.size());
  pool_.run(items_.size(), [&](std::size_t i) {
    const attention_item& item = items_[i];
    const batch_sequence& s = batch.sequences[item.sequence];
    const std::size_t head = (item.rank * kv_heads_ + item.kv_head) * shape.group;
    const std::size_t offset = (s.first_row + item.first) * stride + head * dim;
    const std::size_t group = cache_.group_of(number);
    attention_work work;
    work.q = query_.data() + offset;
    work.q_stride = stride;
    work.first_position = static_cast<std::size_t>(s.first_position) + item.first;
    work.tokens = std::min(tokens_per_item, s.rows - item.first);
    work.pages = pages_.data() + page_begin_[item.sequence * ranks_ + item.rank];
    work.first_page = static_cast<std::size_t>(s.where->first[group]);
    work.kv_head = item.kv_head;
    work.out = mixed_.data() + offset;
    work.out_stride = stride;
    cpu::attend(shape, work);
  });
}

// The pages of each sequence and rank in this layer, one behind another.
void decoder::gather_pages(const decoder_batch& batch, std::int64_t number) {
  const std::size_t group = cache_.group_of(number);
  pages_.clear();
  page_begin_.clear();
  for (const batch_sequence& s : batch.sequences) {
    const std::int32_t first = s.where->first[group];
    const std::int32_t end =
        (s.first_position + static_cast<std::int32_t>(s.rows) - 1) / kv_cache::block_size + 1;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      page_begin_.push_back(pages_.size());
      for (std::int32_t index = first; index < end; ++index) {
        pages_.push_back(cache_.at(rank, number, s.where->tables[group], first, index));
      }
    }
  }
}

void decoder::feed_forward(const layer_weights& layer, std::int64_t number) {
  const auto width = static_cast<std::size_t>(config_.intermediate_size);
  const std::size_t terms = mlp_terms(number, config_.layers);
  normalize(layer.mlp_norm, {terms});
  multiply_by_rank(layer, &rank_weights::gate, 0, gate_, width);
  multiply_by_rank(layer, &rank_weights::up, 0, up_, width);
  multiply();
  const bool gelu = config_.mlp_activation == model::activation::gelu_tanh;
  take_inputs(rows_, width, {terms}, ranks_);
  pool_.run(rows_, [&](std::size_t row) {
    float* out = inputs_.data() + row * width;
    const float* gate = gate_.data() + row * width;
    const float* up = up_.data() + row * width;
    gelu ? gelu_multiply(gate, up, width, out) : silu_multiply(gate, up, width, out);
    quantize_inputs(row);
  });
  sum_by_rank(layer, &rank_weights::down);
  add_to_hidden(layer.post_mlp_norm);
}

// Sums the ranks' products in rank order and takes the sum into hidden_.
void decoder::add_to_hidden(std::span<const float> norm) {
  const auto width = static_cast<std::size_t>(config_.hidden_size);
  pool_.run(rows_, [&](std::size_t row) {
    float* branch = projected_.data() + row * width;
    float* hidden = hidden_.data() + row * width;
    for (std::size_t rank = 1; rank < ranks_; ++rank) {
      add(branch, branch + rank * rows_ * width, width, branch);
    }
    if (!norm.empty()) {
      rms_norm(branch, norm.data(), width, static_cast<float>(config_.norm_epsilon), branch);
    }
    add(hidden, branch, width, hidden);
  });
}

std::span<float> decoder::compute_logits(const decoder_batch& batch) {
  if (batch.logit_rows.empty()) return {};
  normalize(weights_.output_norm, {plain_terms}, batch.logit_rows);
  const auto width = static_cast<std::size_t>(config_.vocab_size);
  logits_.resize(batch.logit_rows.size() * width);
  float* out = logits_.data();
  for (const packed_weights& part : weights_.head_weights()) {
    products_.push_back({part, {}, 0, out, width});
    out += part.rows();
  }
  multiply();
  refine_likely_logits(batch.logit_rows.size());
  if (config_.final_soft_cap > 0) {
    const auto cap = static_cast<float>(config_.final_soft_cap);
    pool_.run(batch.logit_rows.size(), [&](std::size_t row) {
      soft_cap(&logits_[row * width], cap, width, &logits_[row * width]);
    });
  }
  return logits_;
}

// Computes the likeliest logits of each row again, from the inputs as floats, which are
// in inputs_ still.
void decoder::refine_likely_logits(std::size_t rows) {
  const auto& head = weights_.head_weights();
  if (head[0].takes_floats()) return;
  const auto vocabulary = static_cast<std::size_t>(config_.vocab_size);
  const auto width = static_cast<std::size_t>(config_.hidden_size);
  likely_.resize(rows);
  pool_.run(rows, [&](std::size_t row) {
    const std::span logits{&logits_[row * vocabulary], vocabulary};
    likely_[row] = likely_logits(logits, likely_margin, likely_max);
  });
  constexpr std::size_t chunks_per_row = likely_max / likely_per_chunk;
  pool_.run(rows * chunks_per_row, [&](std::size_t chunk) {
    const std::size_t row = chunk / chunks_per_row;
    const auto& ids = likely_[row];
    const std::size_t first = chunk % chunks_per_row * likely_per_chunk;
    std::vector<float> weight(width);
    for (std::size_t i = first; i < std::min(first + likely_per_chunk, ids.size()); ++i) {
      const std::size_t of_rank = head[0].rows();
      head[ids[i] / of_rank].read_row(ids[i] % of_rank, weight);
      logits_[row * vocabulary + ids[i]] = inner_product(weight, {&inputs_[row * width], width});
    }
  });
}

}  // namespace octavo::cpu
