// The arithmetic of model_config; reading it is in config_parse.cpp.
#include "model/config.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace octavo::model {

std::int64_t model_config::sliding_layers() const {
  return std::count(slides.begin(), slides.end(), true);
}

std::int64_t model_config::linear_parameters_per_layer() const {
  const std::int64_t attention = hidden_size * (2 * query_size() + 2 * kv_size());
  const std::int64_t mlp = (gated_mlp ? 3 : 2) * hidden_size * intermediate_size;
  return attention + mlp;
}

std::int64_t model_config::small_parameters_per_layer() const {
  std::int64_t count = norms_per_layer * hidden_size;
  if (qk_norm) count += 2 * head_dim;
  if (qkv_bias) count += query_size() + 2 * kv_size();
  if (output_bias) count += hidden_size;
  if (mlp_bias) count += (gated_mlp ? 2 : 1) * intermediate_size + hidden_size;
  return count;
}

std::int64_t model_config::embedding_parameters() const {
  return (tied_embeddings ? 1 : 2) * vocab_size * hidden_size;
}

std::int64_t model_config::parameters() const {
  const std::int64_t final_norm = hidden_size;
  return embedding_parameters() + final_norm +
         layers * (linear_parameters_per_layer() + small_parameters_per_layer());
}

std::int64_t kv_heads_per_gpu(const model_config& config, int tp) {
  return std::max<std::int64_t>(1, config.kv_heads / tp);
}

namespace {

/// What does not divide by a tensor parallel size; no name where all does.
struct uneven_part {
  std::string name;
  std::int64_t count = 0;
};

uneven_part first_uneven(const model_config& config, std::int64_t tp) {
  if (config.heads % tp != 0) return {"query heads", config.heads};
  if (config.intermediate_size % tp != 0) return {"MLP columns", config.intermediate_size};
  const bool replicated = tp > config.kv_heads && tp % config.kv_heads == 0;
  if (!replicated && config.kv_heads % tp != 0) return {"key-value heads", config.kv_heads};
  return {};
}

std::string even_sizes(const model_config& config) {
  std::string text;
  for (std::int64_t tp = 1; tp <= config.heads; ++tp) {
    if (!first_uneven(config, tp).name.empty()) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(tp);
  }
  return text;
}

}  // namespace

void check_tensor_parallel(const model_config& config, int tp) {
  if (tp < 1) {
    throw input_error("tensor parallel size must be at least 1, got " + std::to_string(tp));
  }
  const uneven_part part = first_uneven(config, tp);
  if (part.name.empty()) return;
  throw infeasible_error(config.name + ": " + std::to_string(part.count) + " " + part.name +
                         " do not divide by tensor parallel size " + std::to_string(tp) + " (" +
                         std::to_string(part.count) + " = " + std::to_string(tp) + " x " +
                         std::to_string(part.count / tp) + " + " + std::to_string(part.count % tp) +
                         "); allowed sizes: " + even_sizes(config));
}

}  // namespace octavo::model
