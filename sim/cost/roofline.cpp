// The roofline of a step. Kernel times are in kernels.cpp.
#include "sim/cost/roofline.hpp"

#include <utility>

#include "model/kv_arithmetic.hpp"

namespace octavo::sim {
namespace {

// Beyond these sizes a price is computed when asked for.
constexpr std::int64_t table_tokens = 4096;
constexpr std::int64_t table_sequences = 1024;

}  // namespace

roofline_cost::roofline_cost(roofline_setup setup)
    : setup_(std::move(setup)),
      rates_(rates_for(setup_.gpu, setup_.weights)),
      head_rates_(rates_for(setup_.gpu, model::weight_format::fp16)) {
  const model::model_config& config = setup_.config;
  model::check_tensor_parallel(config, setup_.tp);
  full_ = {.heads = config.heads / setup_.tp,
           .kv_heads = model::kv_heads_per_gpu(config, setup_.tp),
           .head_dim = config.head_dim,
           .kv_element_bytes = model::kv_element_bytes(setup_.kv)};
  sliding_ = full_;
  sliding_.window = config.sliding_window;
  full_layers_ = static_cast<double>(config.full_layers());
  sliding_layers_ = static_cast<double>(config.sliding_layers());
  for (std::int64_t tokens = 0; tokens <= table_tokens; ++tokens) {
    step_breakdown parts;
    add_dense(tokens, parts);
    dense_table_us_.push_back(parts.total());
  }
  for (std::int64_t sequences = 0; sequences <= table_sequences; ++sequences) {
    step_breakdown parts;
    add_sampling(sequences, parts);
    sampling_table_us_.push_back(parts.total());
  }
}

void roofline_cost::add_dense(std::int64_t tokens, step_breakdown& parts) const {
  if (tokens == 0) return;
  const model::model_config& config = setup_.config;
  const gpu_spec& gpu = setup_.gpu;
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t query = full_.heads * full_.head_dim;
  const std::int64_t kv = full_.kv_heads * full_.head_dim;
  const std::int64_t mlp = config.intermediate_size / setup_.tp;
  const std::int64_t up = config.gated_mlp ? 2 * mlp : mlp;
  const auto layers = static_cast<double>(config.layers);
  const auto count = static_cast<double>(tokens);
  const auto moved = [&](std::int64_t elements) {
    return elementwise_us(gpu, 2 * count * static_cast<double>(elements));
  };
  parts.projections += layers * (gemm_us(gpu, rates_, tokens, query + 2 * kv, hidden) +
                                 gemm_us(gpu, rates_, tokens, hidden, query));
  parts.mlp += layers * (gemm_us(gpu, rates_, tokens, up, hidden) +
                         gemm_us(gpu, rates_, tokens, hidden, mlp));
  // Norms read and write the stream and the residual, of which caches keep a
  // part; rotary embedding reads and writes queries and keys; the KV write reads
  // and writes keys and values.
  const double norms = static_cast<double>(config.norms_per_layer) * moved(5 * hidden / 2);
  const double query_norms = config.qk_norm ? moved(2 * (query + kv)) : 0;
  const double rotary = moved(2 * (query + kv));
  const double kv_write = moved(4 * kv);
  const double activation = moved(up + mlp);
  parts.elementwise += layers * (norms + query_norms + rotary + kv_write + activation) +
                       moved(2 * hidden) + moved(5 * hidden / 2);
  // After attention, after the MLP, and once for the embedding's rows.
  parts.all_reduce +=
      (2 * layers + 1) * all_reduce_us(gpu, setup_.tp, 2 * count * static_cast<double>(hidden));
}

void roofline_cost::add_sampling(std::int64_t sequences, step_breakdown& parts) const {
  if (sequences == 0) return;
  const gpu_spec& gpu = setup_.gpu;
  const std::int64_t vocabulary = setup_.config.vocab_size;
  const std::int64_t rows = (vocabulary + setup_.tp - 1) / setup_.tp;
  parts.head += gemm_us(gpu, head_rates_, sequences, rows, setup_.config.hidden_size);
  const double logits = static_cast<double>(sequences * vocabulary);
  // Gathering every GPU's share costs what reducing half as much would.
  parts.all_reduce += all_reduce_us(gpu, setup_.tp, logits);
  // Widen to fp32, scale, softmax and pick: passes over the logits.
  constexpr int sampling_kernels = 10;
  constexpr double passes_bytes = 16;
  const double fixed = sampling_kernels * gpu.efficiency.elementwise_floor_us;
  parts.sampling += fixed + elementwise_us(gpu, passes_bytes * logits);
}

double roofline_cost::dense_us(std::int64_t tokens) const {
  if (tokens <= table_tokens) return dense_table_us_[static_cast<std::size_t>(tokens)];
  step_breakdown parts;
  add_dense(tokens, parts);
  return parts.total();
}

double roofline_cost::sampling_us(std::int64_t sequences) const {
  if (sequences <= table_sequences) return sampling_table_us_[static_cast<std::size_t>(sequences)];
  step_breakdown parts;
  add_sampling(sequences, parts);
  return parts.total();
}

double roofline_cost::decode_us(const step_shape& shape) const {
  double us = 0;
  if (full_layers_ > 0) {
    us += full_layers_ *
          decode_attention_us(setup_.gpu, full_, shape.decode_sequences, shape.decode_context);
  }
  if (sliding_layers_ > 0) {
    us += sliding_layers_ *
          decode_attention_us(setup_.gpu, sliding_, shape.decode_sequences, shape.decode_context);
  }
  return us;
}

double roofline_cost::prefill_us(const step_shape& shape) const {
  double us = 0;
  if (full_layers_ > 0) us += full_layers_ * prefill_attention_us(setup_.gpu, full_, shape.chunks);
  if (sliding_layers_ > 0) {
    us += sliding_layers_ * prefill_attention_us(setup_.gpu, sliding_, shape.chunks);
  }
  return us;
}

double roofline_cost::device_time_us(const step_shape& shape) const {
  return dense_us(shape.tokens()) + sampling_us(shape.sampled_sequences) + decode_us(shape) +
         prefill_us(shape);
}

double roofline_cost::host_time_us(const step_shape& shape) const {
  const auto sequences =
      static_cast<double>(shape.decode_sequences + static_cast<std::int64_t>(shape.chunks.size()));
  return setup_.host_step_us + setup_.host_sequence_us * sequences;
}

std::string roofline_cost::source() const {
  return "roofline (" + setup_.gpu.name + ", tp " + std::to_string(setup_.tp) + ", " +
         model::to_string(setup_.weights) + " weights, " + model::to_string(setup_.kv) + " KV)";
}

step_breakdown roofline_cost::breakdown(const step_shape& shape) const {
  step_breakdown parts;
  add_dense(shape.tokens(), parts);
  add_sampling(shape.sampled_sequences, parts);
  parts.attention_decode = decode_us(shape);
  parts.attention_prefill = prefill_us(shape);
  return parts;
}

}  // namespace octavo::sim
