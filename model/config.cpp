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

void check_divides(const model_config& config, const char* what, std::int64_t count, int tp) {
  if (count % tp == 0) return;
  throw infeasible_error(config.name + ": " + std::to_string(count) + " " + what +
                         " do not divide by tensor parallel size " + std::to_string(tp) + " (" +
                         std::to_string(count) + " = " + std::to_string(tp) + " x " +
                         std::to_string(count / tp) + " + " + std::to_string(count % tp) +
                         "); choose a divisor of " + std::to_string(count));
}

}  // namespace

void check_tensor_parallel(const model_config& config, int tp) {
  if (tp < 1) {
    throw input_error("tensor parallel size must be at least 1, got " + std::to_string(tp));
  }
  check_divides(config, "query heads", config.heads, tp);
  check_divides(config, "MLP columns", config.intermediate_size, tp);
  const bool replicated = tp > config.kv_heads && tp % config.kv_heads == 0;
  if (!replicated) check_divides(config, "key-value heads", config.kv_heads, tp);
}

}  // namespace octavo::model
