// The forward pass: see decoder.hpp.
#include "gpu/executor/decoder.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gpu/kernels/embedding/embedding.hpp"
#include "gpu/kernels/gated_activation/gated_activation.hpp"
#include "gpu/kernels/logits/logits.hpp"
#include "gpu/kernels/paged_attention/paged_attention.hpp"
#include "gpu/kernels/rms_norm/rms_norm.hpp"
#include "gpu/kernels/rope_kv_write/rope_kv_write.hpp"
#include "model/rope_angles.hpp"

namespace octavo::gpu {
namespace {

float attention_scale(const model::model_config& c) {
  if (c.attention_scale > 0) return static_cast<float>(c.attention_scale);
  return static_cast<float>(1 / std::sqrt(static_cast<double>(c.head_dim)));
}

}  // namespace

decoder::decoder(const device_weights& weights, kv_pools& pools, const step_plan& plan,
                 const decoder_options& options, stream& on)
    : weights_(weights), config_(weights.config), pools_(pools), options_(options) {
  products_.type = options.type;
  products_.multiprocessors = options.limits.multiprocessors;
  products_.batch_invariant = options.batch_invariant;
  products_.dense_tokens_min = options.dense_tokens_min;
  const auto rows = static_cast<std::size_t>(options.limits.rows_max);
  const auto logit_rows = std::min(rows, static_cast<std::size_t>(options.limits.sequences_max));
  const auto width = static_cast<std::size_t>(config_.hidden_size);
  const model::rank_share& share = weights.share;
  residual_ = device_array<float>(rows * width);
  for (auto* array : {&normed_, &branch_}) *array = device_array<std::uint16_t>(rows * width);
  const std::int64_t heads_width = share.query.size() + 2 * share.kv.size();
  const std::int64_t mixed_width = std::max(share.query.size(), share.mlp.size());
  grouped_ = device_array<std::uint16_t>(
      rows * static_cast<std::size_t>(std::max(heads_width, 2 * share.mlp.size())));
  mixed_ = device_array<std::uint16_t>(rows * static_cast<std::size_t>(mixed_width));
  logits_ = device_array<float>(logit_rows * static_cast<std::size_t>(options.vocabulary));
  chosen_ = device_array<std::int32_t>(static_cast<std::size_t>(options.limits.sequences_max));
  const auto shard = static_cast<std::size_t>(weights.head_table().rows) * logit_rows;
  if (!logits_are_whole()) shard_logits_ = device_array<float>(shard);
  if (options.ranks > 1) {
    for (auto& array : partial_) array = device_array<float>(rows * width);
    gathered_logits_ = device_array<float>(shard * static_cast<std::size_t>(options.ranks));
  }
  const auto widest = static_cast<std::size_t>(
      std::max({config_.hidden_size, share.query.size(), share.mlp.size()}));
  fp8_codes_ = device_array<std::byte>(rows * widest);
  fp8_scales_ = device_array<float>(rows * (widest / fp8_block + 1));
  products_.fp8_codes = fp8_codes_.data();
  products_.fp8_scales = fp8_scales_.data();
  attention_scratch_ = device_array<std::byte>(plan.attention_workspace_bytes());
  global_angles_ = make_angles(false, on);
  local_angles_ = make_angles(true, on);
  reserve_workspace(on);
}

bool decoder::logits_are_whole() const {
  return options_.ranks == 1 && weights_.head_table().rows == options_.vocabulary;
}

decoder::angle_table decoder::make_angles(bool local, stream& on) const {
  const model::rope_angles angles(config_, local);
  const std::size_t pairs = angles.dimensions() / 2;
  const auto positions = static_cast<std::size_t>(options_.limits.model_len_max);
  std::vector<float> cosines(positions * pairs);
  std::vector<float> sines(positions * pairs);
  for (std::size_t at = 0; at < positions; ++at) {
    angles.at(static_cast<std::int64_t>(at), std::span{cosines}.subspan(at * pairs, pairs),
              std::span{sines}.subspan(at * pairs, pairs));
  }
  angle_table table{device_array<float>(cosines.size()), device_array<float>(sines.size()),
                    static_cast<int>(pairs)};
  table.cosines.upload(on, std::span<const float>(cosines));
  table.sines.upload(on, std::span<const float>(sines));
  return table;
}

void decoder::reserve_workspace(stream& on) {
  gemm_needs needs;
  for (const int tokens :
       covering_token_counts(options_.limits.rows_max, products_.dense_tokens_min)) {
    for (const device_layer& layer : weights_.layers) {
      for (const linear_group* one : {&layer.heads, &layer.gates}) {
        needs |= one->needs(products_, tokens);
      }
      for (const device_linear* one : {&layer.output, &layer.down}) {
        needs |= one->needs(products_, tokens);
      }
    }
    needs |= table_needs(products_, weights_.head_table(), tokens, dtype::float32);
  }
  product_scratch_ = device_array<std::byte>(needs.bytes);
  product_counters_ = device_array<int>(static_cast<std::size_t>(needs.counters));
  product_counters_.fill_zero(on);
  products_.workspace = {product_scratch_.data(), needs.bytes, product_counters_.data(),
                         needs.counters};
}

void decoder::forward(stream& on, const step_plan& plan, const step_arrays& arrays) {
  const int rows = plan.rows();
  embed_tokens(on, plan, arrays);
  const device_array<float> none;
  const void* branch = nullptr;
  const device_array<float>* branch_norm = &none;
  for (std::int64_t number = 0; number < config_.layers; ++number) {
    const device_layer& layer = weights_.layers[static_cast<std::size_t>(number)];
    norm(on, rows, branch, *branch_norm, layer.attention_norm);
    attend(on, plan, arrays, layer, number);
    norm(on, rows, branch_.data(), layer.post_attention_norm, layer.mlp_norm);
    feed_forward(on, rows, layer);
    branch = branch_.data();
    branch_norm = &layer.post_mlp_norm;
  }
  if (plan.logit_rows() > 0) compute_logits(on, plan, arrays);
}

void decoder::forward_as_graph(stream& on, const step_plan& plan, const step_arrays& arrays) {
  bool wide = false;
  for (std::size_t g = 0; g < plan.groups(); ++g) wide = wide || plan.counts(g).wide > 0;
  const std::pair key{plan.rows(), wide};
  if (options_.others != nullptr) options_.others->require_working();
  const auto found = graphs_.find(key);
  if (found == graphs_.end()) {
    forward(on, plan, arrays);
    graphs_[key] = std::nullopt;
    return;
  }
  std::optional<graph>& steps = found->second;
  if (!steps) {
    graph captured = capture(on, [&] { forward(on, plan, arrays); });
    captured.instantiate();
    steps = std::move(captured);
  }
  steps->launch(on);
}

void decoder::embed_tokens(stream& on, const step_plan& plan, const step_arrays& arrays) {
  embedding_params p;
  p.type = options_.type;
  p.rows = plan.rows();
  p.width = static_cast<int>(config_.hidden_size);
  p.ids = arrays.numbers(plan.tokens());
  p.sources = arrays.numbers(plan.sources());
  p.chosen = chosen_.data();
  p.table = weights_.embedding.values.data();
  p.begin = static_cast<int>(weights_.share.vocabulary.begin);
  p.end = static_cast<int>(weights_.share.vocabulary.end);
  p.scale = static_cast<float>(config_.embedding_scale);
  p.output = options_.ranks == 1 ? residual_.data() : next_partial();
  embed(p, on);
  if (options_.ranks == 1) return;
  options_.others->sum(on, options_.rank, last_partial(p.rows), dtype::float32, residual_.data());
}

float* decoder::next_partial() {
  turn_ = 1 - turn_;
  return partial_[turn_].data();
}

partial_rows decoder::last_partial(int rows) {
  return {rows, static_cast<int>(config_.hidden_size), partial_[turn_].data()};
}

// Takes a branch that project() left, normed where it has a norm of its own, into the
// residual stream, and norms that for the products to come.
void decoder::norm(stream& on, int rows, const void* branch, const device_array<float>& branch_norm,
                   const device_array<float>& weight) {
  rms_norm_params p;
  p.type = options_.type;
  p.rows = rows;
  p.width = static_cast<int>(config_.hidden_size);
  p.epsilon = static_cast<float>(config_.norm_epsilon);
  p.input = branch;
  p.residual = residual_.data();
  p.input_weight = branch == nullptr ? nullptr : branch_norm.data();
  p.weight = weight.data();
  p.output = normed_.data();
  take_branch(on, p);
}

// rms_norm(), its input summed over ranks first, if there is one.
void decoder::take_branch(stream& on, const rms_norm_params& p) {
  if (p.input == nullptr || options_.ranks == 1) return rms_norm(p, on);
  options_.others->sum_and_norm(on, options_.rank, last_partial(p.rows), p, branch_.data());
}

// branch_ = the products with `by`; of several ranks, each leaves its part of them, which
// take_branch() sums.
void decoder::project(stream& on, const device_linear& by, const void* from, int rows) {
  if (options_.ranks == 1) {
    by.multiply(on, products_, from, rows, branch_.data(), options_.type);
    return;
  }
  by.multiply(on, products_, from, rows, next_partial(), dtype::float32);
}

// Norms and turns queries and keys, and puts keys and values into their pages.
void decoder::place_heads(stream& on, const step_plan& plan, const step_arrays& arrays,
                          const device_layer& layer, std::int64_t number) {
  const model::kv_place& place = pools_.place(number);
  const attention_shape& shape = plan.shape(place.group);
  const angle_table& angles = shape.window > 0 ? local_angles_ : global_angles_;
  rope_kv_write_run run;
  run.type = options_.type;
  run.kv_type = options_.kv_type;
  run.rows = plan.rows();
  run.heads = shape.heads;
  run.kv_heads = shape.kv_heads;
  run.head_dim = shape.head_dim;
  const linear_group::place queries = layer.heads.place_of(0, run.rows);
  const linear_group::place keys = layer.heads.place_of(1, run.rows);
  const linear_group::place values = layer.heads.place_of(2, run.rows);
  run.queries = run.queries_out = grouped_.data() + queries.first;
  run.query_stride = run.queries_out_stride = queries.stride;
  run.keys = grouped_.data() + keys.first;
  run.key_stride = keys.stride;
  run.values = grouped_.data() + values.first;
  run.value_stride = values.stride;
  run.rope.pairs = angles.pairs;
  run.rope.style = config_.rope.interleaved ? rope_style::neighbours : rope_style::halves;
  run.rope.cosines = angles.cosines.data();
  run.rope.sines = angles.sines.data();
  run.rope.table_positions = options_.limits.model_len_max;
  run.query_norm = layer.q_norm.data();
  run.key_norm = layer.k_norm.data();
  run.norm_epsilon = static_cast<float>(config_.norm_epsilon);
  run.positions = arrays.numbers(plan.positions());
  run.sequence_of_row = arrays.numbers(plan.sequence_of_row());
  run.sequence_tables = arrays.numbers(plan.sequence_tables(place.group));
  run.tables = arrays.numbers(plan.table(place.group, place.block));
  run.key_pages = pools_.keys(number);
  run.value_pages = pools_.values(number);
  rope_kv_write(run, on);
}

void decoder::attend(stream& on, const step_plan& plan, const step_arrays& arrays,
                     const device_layer& layer, std::int64_t number) {
  const int rows = plan.rows();
  layer.heads.multiply(on, products_, normed_.data(), rows, grouped_.data());
  place_heads(on, plan, arrays, layer, number);
  const model::kv_place& place = pools_.place(number);
  paged_attention_run run;
  run.shape = plan.shape(place.group);
  run.capacity = plan.capacity(place.group);
  run.launch = plan.counts(place.group);
  run.plan = arrays.bytes(plan.plan(place.group));
  run.tables = arrays.numbers(plan.table(place.group, place.block));
  const linear_group::place queries = layer.heads.place_of(0, rows);
  run.queries = grouped_.data() + queries.first;
  run.query_stride = queries.stride;
  run.keys = pools_.keys(number);
  run.values = pools_.values(number);
  run.out = mixed_.data();
  run.out_stride = layer.heads.outputs(0);
  run.workspace = attention_scratch_.data();
  run.scale = attention_scale(config_);
  run.soft_cap = static_cast<float>(config_.attention_soft_cap);
  paged_attention(run, on);
  project(on, layer.output, mixed_.data(), rows);
}

void decoder::feed_forward(stream& on, int rows, const device_layer& layer) {
  layer.gates.multiply(on, products_, normed_.data(), rows, grouped_.data());
  const linear_group::place gate = layer.gates.place_of(0, rows);
  const linear_group::place up = layer.gates.place_of(1, rows);
  gated_activation_params p;
  p.type = options_.type;
  p.function = config_.mlp_activation == model::activation::gelu_tanh ? gate_function::gelu_tanh
                                                                      : gate_function::silu;
  p.rows = rows;
  p.width = layer.gates.outputs(0);
  p.stride = gate.stride;
  p.gate = grouped_.data() + gate.first;
  p.up = grouped_.data() + up.first;
  p.output = mixed_.data();
  gated_activation(p, on);
  project(on, layer.down, mixed_.data(), rows);
}

void decoder::compute_logits(stream& on, const step_plan& plan, const step_arrays& arrays) {
  const int rows = plan.logit_rows();
  const device_layer& last = weights_.layers.back();
  rms_norm_params n;
  n.type = options_.type;
  n.rows = rows;
  n.width = static_cast<int>(config_.hidden_size);
  n.epsilon = static_cast<float>(config_.norm_epsilon);
  n.input = branch_.data();
  n.residual = residual_.data();
  n.input_weight = last.post_mlp_norm.data();
  if (options_.ranks > 1) {
    // The sum is one of all rows, whichever of them are looked at.
    n.rows = plan.rows();
    take_branch(on, n);
    n.rows = rows;
    n.input = n.input_weight = nullptr;
  }
  n.weight = weights_.output_norm.data();
  n.row_ids = arrays.numbers(plan.logit_ids());
  n.output = normed_.data();
  rms_norm(n, on);
  const device_table& head = weights_.head_table();
  float* product = logits_are_whole() ? logits_.data() : shard_logits_.data();
  multiply_table(on, products_, head, nullptr, normed_.data(), rows, product, dtype::float32);
  logits_params p;
  p.rows = rows;
  p.vocabulary = options_.vocabulary;
  p.shards = options_.ranks;
  p.shard_width = head.rows;
  p.input = product;
  p.soft_cap = static_cast<float>(config_.final_soft_cap);
  p.output = logits_.data();
  if (options_.ranks > 1) {
    const auto count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(head.rows);
    options_.others->gather(on, options_.rank, product, count, gathered_logits_.data());
    p.input = gathered_logits_.data();
  }
  if (!logits_are_whole() || p.soft_cap > 0) finish_logits(p, on);
}

}  // namespace octavo::gpu
