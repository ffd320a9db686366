// Memory arithmetic of models. See the header for the conventions.
#include "model/kv_arithmetic.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "core/error.hpp"

namespace octavo::model {
namespace {

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

std::string gigabytes(double bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f GB", bytes / 1e9);
  return text.data();
}

}  // namespace

std::int64_t kv_bytes_per_token_layer(const model_config& config, kv_dtype dtype, int tp) {
  const std::int64_t head = config.head_dim * kv_element_bytes(dtype) + kv_scale_bytes(dtype);
  return 2 * kv_heads_per_gpu(config, tp) * head;
}

std::int64_t kv_bytes_per_token(const model_config& config, kv_dtype dtype, int tp) {
  return config.layers * kv_bytes_per_token_layer(config, dtype, tp);
}

std::int64_t kv_bytes_at(const model_config& config, kv_dtype dtype, int tp, std::int64_t context) {
  const std::int64_t per_layer = kv_bytes_per_token_layer(config, dtype, tp);
  const std::int64_t kept = std::min(context, config.sliding_window);
  return per_layer * (config.full_layers() * context + config.sliding_layers() * kept);
}

kv_layout make_kv_layout(const model_config& config, kv_dtype dtype, int tp,
                         std::int64_t block_size) {
  if (block_size < 1) {
    throw input_error("block size must be at least 1 token, got " + std::to_string(block_size));
  }
  const std::int64_t full = config.full_layers();
  const std::int64_t sliding = config.sliding_layers();
  const std::int64_t unit_layers = std::gcd(full, sliding);
  kv_layout layout;
  layout.block_size = block_size;
  layout.block_bytes = unit_layers * block_size * kv_bytes_per_token_layer(config, dtype, tp);
  if (full > 0) layout.groups.push_back({full, 0, full / unit_layers});
  if (sliding > 0) {
    layout.groups.push_back({sliding, config.sliding_window, sliding / unit_layers});
  }
  return layout;
}

std::int64_t pool_blocks_at(const kv_layout& layout, std::int64_t context) {
  std::int64_t total = 0;
  for (const kv_group& group : layout.groups) {
    const std::int64_t dropped =
        group.window > 0 ? std::max<std::int64_t>(0, context - group.window) : 0;
    const std::int64_t spans = divide_up(context, layout.block_size) - dropped / layout.block_size;
    total += spans * group.pool_blocks;
  }
  return total;
}

std::int64_t matrix_bytes(std::int64_t k, std::int64_t n, weight_format format) {
  constexpr std::int64_t group = 128;
  constexpr std::int64_t channel_scale_bytes = 4;
  switch (format) {
    case weight_format::fp16:
      return 2 * k * n;
    case weight_format::fp8:
    case weight_format::int8:
      return k * n + channel_scale_bytes * n;
    case weight_format::int4: {
      const std::int64_t groups = divide_up(k, group) * n;
      return divide_up(k * n, 2) + 2 * groups + divide_up(groups, 2);
    }
  }
  return 0;
}

weight_memory weight_bytes(const model_config& config, weight_format format, int tp) {
  check_tensor_parallel(config, tp);
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t query = config.query_size() / tp;
  const std::int64_t kv = kv_heads_per_gpu(config, tp) * config.head_dim;
  const std::int64_t mlp = config.intermediate_size / tp;
  const std::int64_t up_matrices = config.gated_mlp ? 2 : 1;
  const std::int64_t layer =
      matrix_bytes(hidden, query + 2 * kv, format) + matrix_bytes(query, hidden, format) +
      matrix_bytes(hidden, up_matrices * mlp, format) + matrix_bytes(mlp, hidden, format);

  std::int64_t small = config.norms_per_layer * hidden;
  if (config.qk_norm) small += 2 * config.head_dim;
  if (config.qkv_bias) small += query + 2 * kv;
  if (config.output_bias) small += hidden;
  if (config.mlp_bias) small += up_matrices * mlp + hidden;

  const std::int64_t tables = config.tied_embeddings ? 1 : 2;
  return {.linear = config.layers * layer,
          .embeddings = 2 * tables * divide_up(config.vocab_size, tp) * hidden,
          .small = 2 * (config.layers * small + hidden)};
}

std::int64_t activation_peak_bytes(const model_config& config, int tp,
                                   std::int64_t max_num_batched_tokens, std::int64_t max_num_seqs) {
  constexpr std::int64_t driver_bytes = 600LL << 20;
  const std::int64_t mlp = config.intermediate_size / tp;
  const std::int64_t width = 2 * config.hidden_size + (config.gated_mlp ? 3 : 2) * mlp;
  // Logits: 16 bits, fp32, and an fp32 copy that sampling sorts.
  const std::int64_t logits = max_num_seqs * config.vocab_size * (2 + 4 + 4);
  return 2 * max_num_batched_tokens * width + logits + driver_bytes;
}

kv_block_budget kv_blocks(std::int64_t total_memory, double utilization, std::int64_t weight_bytes,
                          std::int64_t activation_peak, std::int64_t block_bytes) {
  if (!(utilization > 0.0 && utilization <= 1.0)) {
    throw input_error("GPU memory utilization must be above 0 and at most 1, got " +
                      std::to_string(utilization));
  }
  if (total_memory < 1 || weight_bytes < 0 || activation_peak < 0 || block_bytes < 1) {
    throw input_error("memory sizes must be positive: total " + std::to_string(total_memory) +
                      ", weights " + std::to_string(weight_bytes) + ", activations " +
                      std::to_string(activation_peak) + ", block " + std::to_string(block_bytes));
  }
  const auto usable =
      static_cast<std::int64_t>(std::floor(static_cast<double>(total_memory) * utilization));
  const std::int64_t left = usable - weight_bytes - activation_peak;
  std::array<char, 16> share{};
  std::snprintf(share.data(), share.size(), "%.3g", utilization);
  const std::string sum = gigabytes(static_cast<double>(total_memory)) + " x " + share.data() +
                          " - " + gigabytes(static_cast<double>(weight_bytes)) + " weights - " +
                          gigabytes(static_cast<double>(activation_peak)) +
                          " activations = " + gigabytes(static_cast<double>(left)) + " for KV";
  if (left < block_bytes) {
    throw infeasible_error("no room for the KV cache: " + sum + ", and one block takes " +
                           std::to_string(block_bytes) +
                           " bytes; use more GPUs, a smaller weight format, or more memory");
  }
  const std::int64_t blocks = left / block_bytes;
  return {blocks, sum + " / " + std::to_string(block_bytes) +
                      " bytes a block = " + std::to_string(blocks) + " blocks"};
}

}  // namespace octavo::model
