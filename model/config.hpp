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

/// How rotary position embedding is stretched beyond the trained context.
enum class rope_scaling {
  none,
  linear,  ///< all frequencies divided by factor
  llama3,  ///< low frequencies divided, high ones kept, a ramp between
  yarn,    ///< https://arxiv.org/abs/2309.00071
  other    ///< something else: scaling_name says what; cannot be run
};

/// Rotary position embedding: element pair i of a head turns by
/// position x theta^(-2i / dimensions).
struct rope_config {
  double theta = 10'000;
  /// Base in layers that slide, which are never scaled; 0 = as the others.
  double local_theta = 0;
  /// Leading elements of a head that are rotated; 0 = all.
  std::int64_t dimensions = 0;
  /// Are pairs neighbours (2i, 2i + 1)? Otherwise they are (i, i + half).
  bool interleaved = false;
  rope_scaling scaling = rope_scaling::none;
  std::string scaling_name;
  double factor = 1;
  /// llama3: wavelengths over original_positions / low are divided, those under
  /// original_positions / high are kept.
  double low_frequency_factor = 1;
  double high_frequency_factor = 4;
  /// Trained context; 0 = max_positions.
  std::int64_t original_positions = 0;
  double beta_fast = 32;
  double beta_slow = 1;
  /// yarn: are the ends of its ramp rounded to whole dimensions?
  bool truncate = true;
  /// Multiplies cosine and sine; 0 = what the scaling prescribes.
  double attention_factor = 0;
  /// Further divisors of the frequencies, one per pair, from the weights; empty = none.
  std::vector<float> divisors;
};

enum class activation { silu, gelu_tanh, other };

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

  // What a forward pass needs beyond the shape.
  rope_config rope;
  double norm_epsilon = 1e-6;
  /// Norms multiply by 1 + weight rather than by weight.
  bool norm_adds_one = false;
  activation mlp_activation = activation::silu;
  /// Multiplies embeddings.
  double embedding_scale = 1;
  /// Multiplies attention scores; 0 = 1 / sqrt(head_dim).
  double attention_scale = 0;
  /// Scores and logits s become cap x tanh(s / cap); 0 = they do not.
  double attention_soft_cap = 0;
  double final_soft_cap = 0;

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
