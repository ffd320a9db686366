// What a model is, in numbers: the shape that decides its cost and its memory.
//
//   model_config config = load_config("config.json");      // a Hugging Face file
//   config.parameters();                                    // exact
//   check_tensor_parallel(config, 4);                       // throws infeasible_error
//
// Dense decoder-only transformers only; experts and latent attention are
// refused by name. Weights are not read here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::model {

/// The shape of a dense decoder-only transformer. Counts, unless said otherwise.
struct model_config {
  std::string name;
  /// Hugging Face `model_type`, lower case.
  std::string family;
  std::int64_t hidden_size = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t vocab_size = 0;
  std::int64_t max_positions = 0;
  /// The input embedding is also the output head.
  bool tied_embeddings = false;
  /// Gate and up projections (three MLP matrices) rather than two.
  bool gated_mlp = true;
  bool qkv_bias = false;
  bool output_bias = false;
  bool mlp_bias = false;
  /// One norm of head_dim for queries and one for keys in each layer.
  bool qk_norm = false;
  /// Norms of hidden_size in each layer: 2, or 4 where outputs are normed too.
  std::int64_t norms_per_layer = 2;
  /// Tokens a sliding-window layer attends to; 0 where no layer slides.
  std::int64_t sliding_window = 0;
  /// Per layer: does it slide? Empty where no layer does.
  std::vector<bool> slides;
  /// What the reader should know: assumptions made for an unknown family, …
  std::vector<std::string> notes;

  [[nodiscard]] std::int64_t sliding_layers() const;
  [[nodiscard]] std::int64_t full_layers() const { return layers - sliding_layers(); }
  /// Width of all query heads, of all key (or value) heads.
  [[nodiscard]] std::int64_t query_size() const { return heads * head_dim; }
  [[nodiscard]] std::int64_t kv_size() const { return kv_heads * head_dim; }

  /// Parameters of the linear layers (no biases) in one transformer layer:
  /// those that quantization makes smaller.
  [[nodiscard]] std::int64_t linear_parameters_per_layer() const;
  /// Biases and norms in one transformer layer.
  [[nodiscard]] std::int64_t small_parameters_per_layer() const;
  /// Embedding and, where it is not tied, output head.
  [[nodiscard]] std::int64_t embedding_parameters() const;
  /// All parameters of the language model (no vision tower), exactly.
  [[nodiscard]] std::int64_t parameters() const;
};

/// Reads the text of a Hugging Face config.json. `where` names it in messages.
/// A nested `text_config` is followed. Throws input_error naming the field that
/// is missing, ill-typed, or stands for something unsupported (experts, …).
[[nodiscard]] model_config parse_config(std::string_view text, std::string_view where);

/// Reads a config.json. Throws input_error when it cannot be opened or used.
[[nodiscard]] model_config load_config(const std::string& path);

/// Key-value heads on one GPU: kv_heads / tp, or one copy each where there are
/// more GPUs than heads.
[[nodiscard]] std::int64_t kv_heads_per_gpu(const model_config& config, int tp);

/// Throws infeasible_error, arithmetic shown, where `tp` GPUs cannot share the
/// model evenly: query heads, key-value heads (or replication) and MLP columns.
void check_tensor_parallel(const model_config& config, int tp);

}  // namespace octavo::model
