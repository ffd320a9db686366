// Loading a rank's weights: see device_weights.hpp.
#include "gpu/executor/device_weights.hpp"

#include <array>
#include <span>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "model/quantized/weight_slice.hpp"

namespace octavo::gpu {
namespace {

/// Along what a weight is cut.
enum class cut { outputs, inputs };

class loader {
 public:
  loader(const model::checkpoint& source, const weight_options& options, int ranks, int rank,
         stream& on, const parallel_for& parallel)
      : source_(source),
        options_(options),
        ranks_(ranks),
        whole_(ranks == 1),
        first_(rank == 0),
        share_(model::share_of(source.config(), ranks, rank)),
        on_(on),
        parallel_(parallel) {}

  [[nodiscard]] const model::rank_share& share() const { return share_; }

  /// The rank's share of a layer; views the file where it can.
  [[nodiscard]] stored_linear stored(const std::string& base, std::int64_t rows,
                                     std::int64_t columns, cut along,
                                     model::index_range range) const {
    model::weight_matrix weight = source_.matrix(base, rows, columns);
    std::vector<float> bias = optional(base + ".bias", rows);
    if (along == cut::outputs) bias = model::slice_vector(bias, range);
    if (along == cut::inputs && !first_) bias.clear();
    if (whole_) return {{std::move(weight), {}}, std::move(bias)};
    return {along == cut::outputs ? model::slice_rows(weight, range, base)
                                  : model::slice_columns(weight, range, base),
            std::move(bias)};
  }

  [[nodiscard]] device_linear linear(const stored_linear& from, const std::string& base) const {
    return {from.weight.matrix, from.bias, options_, base, on_, parallel_};
  }
  [[nodiscard]] linear_group group(std::span<const stored_linear> parts,
                                   const std::string& base) const {
    return {parts, options_, base, on_, parallel_};
  }

  [[nodiscard]] device_table table(const std::string& base) const {
    const model::model_config& c = source_.config();
    const model::weight_matrix stored = source_.matrix(base, c.vocab_size, c.hidden_size);
    if (whole_) return upload_table({&stored, 1}, options_.type, on_, parallel_);
    // All ranks' tables have the same height, so that their products line up.
    const auto part = model::slice_rows(stored, share_.vocabulary, base);
    const auto height = static_cast<std::size_t>(model::vocabulary_per_rank(c, ranks_));
    return upload_table({&part.matrix, 1}, options_.type, on_, parallel_, height);
  }

  // A norm's weight as it multiplies; empty where there is none.
  [[nodiscard]] device_array<float> norm(const std::string& base, std::int64_t size) const {
    std::vector<float> weight = optional(base + ".weight", size);
    if (source_.config().norm_adds_one) {
      for (float& w : weight) w += 1;
    }
    device_array<float> array(weight.size());
    if (!weight.empty()) array.upload(on_, std::span<const float>(weight));
    return array;
  }

  [[nodiscard]] device_array<float> needed_norm(const std::string& base, std::int64_t size) const {
    device_array<float> weight = norm(base, size);
    if (weight.size() > 0) return weight;
    throw input_error(source_.path() + ": " + base + ".weight is missing");
  }

 private:
  [[nodiscard]] std::vector<float> optional(const std::string& name, std::int64_t size) const {
    if (source_.find(name) == nullptr) return {};
    return source_.vector(name, size);
  }

  const model::checkpoint& source_;
  weight_options options_;
  int ranks_;
  bool whole_;
  bool first_;
  model::rank_share share_;
  stream& on_;
  const parallel_for& parallel_;
};

device_layer load_layer(const loader& from, const model::model_config& c, std::int64_t number) {
  const std::string at = "blk." + std::to_string(number) + ".";
  const model::rank_share& share = from.share();
  const auto outputs = [&](const char* name, std::int64_t rows, model::index_range range) {
    return from.stored(at + name, rows, c.hidden_size, cut::outputs, range);
  };
  const auto inputs = [&](const char* name, std::int64_t columns, model::index_range range) {
    return from.linear(from.stored(at + name, c.hidden_size, columns, cut::inputs, range),
                       at + name);
  };
  device_layer l;
  l.attention_norm = from.needed_norm(at + "attn_norm", c.hidden_size);
  const std::array heads{outputs("attn_q", c.query_size(), share.query),
                         outputs("attn_k", c.kv_size(), share.kv),
                         outputs("attn_v", c.kv_size(), share.kv)};
  l.heads = from.group(heads, at + "attn_q, attn_k, attn_v");
  l.output = inputs("attn_output", c.query_size(), share.query);
  l.q_norm = from.norm(at + "attn_q_norm", c.head_dim);
  l.k_norm = from.norm(at + "attn_k_norm", c.head_dim);
  l.post_attention_norm = from.norm(at + "post_attention_norm", c.hidden_size);
  l.mlp_norm = from.needed_norm(at + "ffn_norm", c.hidden_size);
  const std::array gates{outputs("ffn_gate", c.intermediate_size, share.mlp),
                         outputs("ffn_up", c.intermediate_size, share.mlp)};
  l.gates = from.group(gates, at + "ffn_gate, ffn_up");
  l.down = inputs("ffn_down", c.intermediate_size, share.mlp);
  l.post_mlp_norm = from.norm(at + "post_ffw_norm", c.hidden_size);
  return l;
}

}  // namespace

std::size_t device_weights::bytes() const {
  std::size_t sum = embedding.values.bytes() + head.values.bytes() + output_norm.bytes();
  for (const device_layer& l : layers) {
    sum += l.heads.bytes() + l.output.bytes() + l.gates.bytes() + l.down.bytes();
    for (const auto* norm : {&l.attention_norm, &l.q_norm, &l.k_norm, &l.post_attention_norm,
                             &l.mlp_norm, &l.post_mlp_norm}) {
      sum += norm->bytes();
    }
  }
  return sum;
}

device_weights load_device_weights(const model::checkpoint& source, const weight_options& options,
                                   int ranks, int rank, stream& on, const parallel_for& parallel,
                                   const load_progress& progress) {
  device_weights d;
  d.config = source.config();
  const model::model_config& c = d.config;
  if (!c.gated_mlp || c.mlp_activation == model::activation::other) {
    throw infeasible_error(source.path() + ": the MLP of this architecture cannot be run; gated " +
                           "SiLU and GELU (tanh) can");
  }
  const loader from{source, options, ranks, rank, on, parallel};
  d.share = from.share();
  d.embedding = from.table("token_embd");
  if (source.has_matrix("output")) d.head = from.table("output");
  d.output_norm = from.needed_norm("output_norm", c.hidden_size);
  for (std::int64_t i = 0; i < c.layers; ++i) {
    d.layers.push_back(load_layer(from, c, i));
    if (progress) progress(static_cast<int>(i + 1), static_cast<int>(c.layers));
  }
  return d;
}

}  // namespace octavo::gpu
