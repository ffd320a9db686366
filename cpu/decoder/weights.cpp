// Loading a decoder: see weights.hpp.
#include "cpu/decoder/weights.hpp"

#include <string>

#include "core/error.hpp"

namespace octavo::cpu {
namespace {

/// Tiles of 8 rows that a thread packs at a time.
constexpr std::size_t tiles_per_chunk = 64;

class loader {
 public:
  loader(const model::checkpoint& source, thread_pool& pool) : source_(source), pool_(pool) {}

  [[nodiscard]] packed_weights matrix(const std::string& base, std::int64_t rows,
                                      std::int64_t columns) {
    const model::weight_matrix stored = source_.matrix(base, rows, columns);
    packed_weights packed = packed_weights::make_room(stored, base);
    const std::size_t tiles = packed.row_tiles();
    pool_.run((tiles + tiles_per_chunk - 1) / tiles_per_chunk, [&](std::size_t chunk) {
      const std::size_t first = chunk * tiles_per_chunk;
      packed.pack(stored, first, std::min(tiles_per_chunk, tiles - first));
    });
    if (const auto* tensor = source_.find(base + ".weight")) source_.done_with(*tensor);
    return packed;
  }

  [[nodiscard]] linear layer(const std::string& base, std::int64_t rows, std::int64_t columns) {
    return {matrix(base, rows, columns), optional(base + ".bias", rows)};
  }

  [[nodiscard]] std::vector<float> optional(const std::string& name, std::int64_t size) const {
    if (source_.find(name) == nullptr) return {};
    return source_.vector(name, size);
  }

  // A norm's weight as it multiplies; empty where there is none.
  [[nodiscard]] std::vector<float> norm(const std::string& base, std::int64_t size) const {
    std::vector<float> weight = optional(base + ".weight", size);
    if (source_.config().norm_adds_one) {
      for (float& w : weight) w += 1;
    }
    return weight;
  }

  [[nodiscard]] std::vector<float> needed_norm(const std::string& base, std::int64_t size) const {
    std::vector<float> weight = norm(base, size);
    if (weight.empty()) throw input_error(source_.path() + ": " + base + ".weight is missing");
    return weight;
  }

 private:
  const model::checkpoint& source_;
  thread_pool& pool_;
};

layer_weights load_layer(loader& from, const model::model_config& c, std::int64_t number) {
  const std::string at = "blk." + std::to_string(number) + ".";
  layer_weights l;
  l.attention_norm = from.needed_norm(at + "attn_norm", c.hidden_size);
  l.q = from.layer(at + "attn_q", c.query_size(), c.hidden_size);
  l.k = from.layer(at + "attn_k", c.kv_size(), c.hidden_size);
  l.v = from.layer(at + "attn_v", c.kv_size(), c.hidden_size);
  l.output = from.layer(at + "attn_output", c.hidden_size, c.query_size());
  l.q_norm = from.norm(at + "attn_q_norm", c.head_dim);
  l.k_norm = from.norm(at + "attn_k_norm", c.head_dim);
  l.post_attention_norm = from.norm(at + "post_attention_norm", c.hidden_size);
  l.mlp_norm = from.needed_norm(at + "ffn_norm", c.hidden_size);
  l.gate = from.layer(at + "ffn_gate", c.intermediate_size, c.hidden_size);
  l.up = from.layer(at + "ffn_up", c.intermediate_size, c.hidden_size);
  l.down = from.layer(at + "ffn_down", c.hidden_size, c.intermediate_size);
  l.post_mlp_norm = from.norm(at + "post_ffw_norm", c.hidden_size);
  return l;
}

}  // namespace

std::size_t decoder_weights::bytes() const {
  std::size_t sum = embedding.bytes() + head.bytes();
  for (const layer_weights& l : layers) {
    for (const linear* one : {&l.q, &l.k, &l.v, &l.output, &l.gate, &l.up, &l.down}) {
      sum += one->weight.bytes();
    }
  }
  return sum;
}

decoder_weights load_decoder(const model::checkpoint& source, thread_pool& pool,
                             const load_progress& progress) {
  decoder_weights d;
  d.config = source.config();
  const model::model_config& c = d.config;
  if (!c.gated_mlp || c.mlp_activation == model::activation::other) {
    throw infeasible_error(source.path() + ": the MLP of this architecture cannot be run; gated " +
                           "SiLU and GELU (tanh) can");
  }
  loader from{source, pool};
  d.embedding = from.matrix("token_embd", c.vocab_size, c.hidden_size);
  if (source.has_matrix("output")) d.head = from.matrix("output", c.vocab_size, c.hidden_size);
  d.output_norm = from.needed_norm("output_norm", c.hidden_size);
  for (std::int64_t i = 0; i < c.layers; ++i) {
    d.layers.push_back(load_layer(from, c, i));
    if (progress) progress(static_cast<std::size_t>(i + 1), static_cast<std::size_t>(c.layers));
  }
  return d;
}

}  // namespace octavo::cpu
