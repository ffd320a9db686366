// Loading a decoder: see weights.hpp.
#include "cpu/decoder/weights.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "model/quantized/weight_slice.hpp"
#include "model/sharding.hpp"

namespace octavo::cpu {
namespace {

/// Tiles of 8 rows that a thread packs at a time.
constexpr std::size_t tiles_per_chunk = 64;
/// Stored bytes after which pages are given back.
constexpr std::size_t stripe_bytes = std::size_t{8} << 20;

/// Along what a weight is cut.
enum class cut { outputs, inputs };

class loader {
 public:
  loader(const model::checkpoint& source, thread_pool& pool, int ranks)
      : source_(source), pool_(pool) {
    for (int rank = 0; rank < ranks; ++rank) {
      shares_.push_back(model::share_of(source.config(), ranks, rank));
    }
  }

  /// Each rank's part of a weight of `rows` outputs and `columns` inputs.
  [[nodiscard]] std::vector<packed_weights> matrices(const std::string& base, std::int64_t rows,
                                                     std::int64_t columns, cut along,
                                                     model::index_range model::rank_share::*part) {
    const model::weight_matrix stored = source_.matrix(base, rows, columns);
    std::vector<packed_weights> packed;
    for (const model::rank_share& share : shares_) {
      if (shares_.size() == 1) {
        packed.push_back(pack(stored, base));
        continue;
      }
      const auto slice = along == cut::outputs ? model::slice_rows(stored, share.*part, base)
                                               : model::slice_columns(stored, share.*part, base);
      packed.push_back(pack(slice.matrix, base));
    }
    if (const auto* tensor = source_.find(base + ".weight")) source_.done_with(*tensor);
    return packed;
  }

  /// Loads the layer "BASE" into each rank's `member`.
  void linear_layer(std::vector<rank_weights>& ranks, linear rank_weights::*member,
                    const std::string& base, std::int64_t rows, std::int64_t columns, cut along,
                    model::index_range model::rank_share::*part) {
    auto weights = matrices(base, rows, columns, along, part);
    const std::vector<float> bias = optional(base + ".bias", rows);
    ranks.resize(shares_.size());
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      linear& to = ranks[rank].*member;
      to.weight = std::move(weights[rank]);
      if (along == cut::outputs) to.bias = model::slice_vector(bias, shares_[rank].*part);
      if (along == cut::inputs && rank == 0) to.bias = bias;
    }
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
  // Packs in stripes and gives each stripe's mapped pages back at once, so that a large
  // matrix is never there twice.
  [[nodiscard]] packed_weights pack(const model::weight_matrix& stored, const std::string& base) {
    packed_weights packed = packed_weights::make_room(stored, base);
    const auto* tensor = shares_.size() == 1 ? source_.find(base + ".weight") : nullptr;
    const std::size_t tiles = packed.row_tiles();
    const std::size_t row_bytes = tensor == nullptr ? 0 : tensor->bytes.size() / packed.rows();
    const std::size_t stripe =
        tensor == nullptr ? tiles
                          : std::max(tiles_per_chunk, stripe_bytes / (row_bytes * tile_rows + 1));
    for (std::size_t begin = 0; begin < tiles; begin += stripe) {
      const std::size_t end = std::min(begin + stripe, tiles);
      pool_.run((end - begin + tiles_per_chunk - 1) / tiles_per_chunk, [&](std::size_t chunk) {
        const std::size_t first = begin + chunk * tiles_per_chunk;
        packed.pack(stored, first, std::min(tiles_per_chunk, end - first));
      });
      if (tensor != nullptr && end < tiles) {
        source_.done_with(*tensor, begin * tile_rows * row_bytes, end * tile_rows * row_bytes);
      }
    }
    return packed;
  }

  const model::checkpoint& source_;
  thread_pool& pool_;
  std::vector<model::rank_share> shares_;
};

layer_weights load_layer(loader& from, const model::model_config& c, std::int64_t number) {
  using model::rank_share;
  using rank = rank_weights;
  const std::string at = "blk." + std::to_string(number) + ".";
  const auto outputs = [&](layer_weights& l, linear rank::*member, const char* name,
                           std::int64_t rows, model::index_range rank_share::*part) {
    from.linear_layer(l.ranks, member, at + name, rows, c.hidden_size, cut::outputs, part);
  };
  const auto inputs = [&](layer_weights& l, linear rank::*member, const char* name,
                          std::int64_t columns, model::index_range rank_share::*part) {
    from.linear_layer(l.ranks, member, at + name, c.hidden_size, columns, cut::inputs, part);
  };
  layer_weights l;
  l.attention_norm = from.needed_norm(at + "attn_norm", c.hidden_size);
  outputs(l, &rank::q, "attn_q", c.query_size(), &rank_share::query);
  outputs(l, &rank::k, "attn_k", c.kv_size(), &rank_share::kv);
  outputs(l, &rank::v, "attn_v", c.kv_size(), &rank_share::kv);
  inputs(l, &rank::output, "attn_output", c.query_size(), &rank_share::query);
  l.q_norm = from.norm(at + "attn_q_norm", c.head_dim);
  l.k_norm = from.norm(at + "attn_k_norm", c.head_dim);
  l.post_attention_norm = from.norm(at + "post_attention_norm", c.hidden_size);
  l.mlp_norm = from.needed_norm(at + "ffn_norm", c.hidden_size);
  outputs(l, &rank::gate, "ffn_gate", c.intermediate_size, &rank_share::mlp);
  outputs(l, &rank::up, "ffn_up", c.intermediate_size, &rank_share::mlp);
  inputs(l, &rank::down, "ffn_down", c.intermediate_size, &rank_share::mlp);
  l.post_mlp_norm = from.norm(at + "post_ffw_norm", c.hidden_size);
  return l;
}

}  // namespace

std::size_t decoder_weights::bytes() const {
  std::size_t sum = 0;
  for (const auto* table : {&embedding, &head}) {
    for (const packed_weights& part : *table) sum += part.bytes();
  }
  for (const layer_weights& l : layers) {
    for (const rank_weights& r : l.ranks) {
      for (const linear* one : {&r.q, &r.k, &r.v, &r.output, &r.gate, &r.up, &r.down}) {
        sum += one->weight.bytes();
      }
    }
  }
  return sum;
}

decoder_weights load_decoder(const model::checkpoint& source, thread_pool& pool,
                             const load_progress& progress, int tensor_parallel_size) {
  decoder_weights d;
  d.config = source.config();
  const model::model_config& c = d.config;
  if (!c.gated_mlp || c.mlp_activation == model::activation::other) {
    throw infeasible_error(source.path() + ": the MLP of this architecture cannot be run; gated " +
                           "SiLU and GELU (tanh) can");
  }
  loader from{source, pool, tensor_parallel_size};
  const auto table = [&](const char* name) {
    return from.matrices(name, c.vocab_size, c.hidden_size, cut::outputs,
                         &model::rank_share::vocabulary);
  };
  d.embedding = table("token_embd");
  if (source.has_matrix("output")) d.head = table("output");
  d.output_norm = from.needed_norm("output_norm", c.hidden_size);
  for (std::int64_t i = 0; i < c.layers; ++i) {
    d.layers.push_back(load_layer(from, c, i));
    if (progress) progress(static_cast<std::size_t>(i + 1), static_cast<std::size_t>(c.layers));
  }
  return d;
}

}  // namespace octavo::cpu
