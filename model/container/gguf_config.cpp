// Reads model_config from GGUF metadata. Keys: the format's documentation and
// what converters write; defaults are those that readers assume.
#include "model/container/gguf_config.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.hpp"
#include "model/config_decoder.hpp"
#include "model/quantized/dequantize.hpp"
#include "model/quantized/stored_tensor.hpp"

namespace octavo::model {
namespace {

// The largest numbers that are read, as for config.json files.
constexpr std::int64_t width_max = 1'000'000;
constexpr std::int64_t mlp_width_max = 10'000'000;
constexpr std::int64_t layers_max = 10'000;
constexpr std::int64_t heads_max = 10'000;
constexpr std::int64_t vocabulary_max = 100'000'000;
constexpr std::int64_t positions_max = 1'000'000'000;

struct architecture {
  std::string_view name;
  std::string_view family;
  bool interleaved = false;
};

constexpr std::array architectures{
    architecture{"llama", "llama", true}, architecture{"mistral", "mistral", true},
    architecture{"qwen2", "qwen2"},       architecture{"qwen3", "qwen3"},
    architecture{"gemma2", "gemma2"},     architecture{"gemma3", "gemma3_text"},
};

class config_reader {
 public:
  explicit config_reader(const gguf_file& file) : file_(file), metadata_(file.metadata) {}

  model_config run() {
    read_architecture();
    read_sizes();
    read_what_tensors_say();
    read_rope();
    read_sliding();
    read_rules();
    return std::move(config_);
  }

 private:
  [[nodiscard]] std::string key(std::string_view suffix) const {
    return std::string(architecture_.name) + "." + std::string(suffix);
  }

  /// The first layer's tensor of a kind; nullptr where there is none.
  [[nodiscard]] const gguf_tensor* layer_tensor(const std::string& kind) const {
    return file_.find("blk.0." + kind);
  }

  void read_architecture() {
    constexpr std::string_view name_key = "general.architecture";
    const std::string_view name = metadata_.text(name_key);
    const auto* found = std::find_if(architectures.begin(), architectures.end(),
                                     [&](const architecture& a) { return a.name == name; });
    if (found == architectures.end()) {
      std::string known;
      for (const auto& a : architectures)
        known += (known.empty() ? "" : ", ") + std::string(a.name);
      metadata_.fail(name_key, "is \"" + std::string(name) + "\"; supported are " + known);
    }
    architecture_ = *found;
    config_.family = architecture_.family;
    config_.name = metadata_.text_or("general.name", config_.family);
    if (metadata_.whole_or(key("expert_count"), heads_max, 0) > 1) {
      metadata_.fail(key("expert_count"), "marks a mixture of experts, which is not supported");
    }
    if (metadata_.whole_or("split.count", 65'535, 1) > 1) {
      metadata_.fail("split.count",
                     "says that this file is one part of several; join them first "
                     "(llama-gguf-split --merge)");
    }
  }

  void read_sizes() {
    config_.hidden_size = metadata_.count(key("embedding_length"), width_max);
    config_.layers = metadata_.count(key("block_count"), layers_max);
    config_.heads = metadata_.count(key("attention.head_count"), heads_max);
    config_.kv_heads = metadata_.count_or(key("attention.head_count_kv"), heads_max, config_.heads);
    config_.intermediate_size = metadata_.count(key("feed_forward_length"), mlp_width_max);
    config_.max_positions = metadata_.count(key("context_length"), positions_max);
    config_.head_dim = metadata_.count_or(key("attention.key_length"), heads_max,
                                          config_.hidden_size / config_.heads);
    if (config_.head_dim < 1) metadata_.fail(key("attention.head_count"), "exceeds the width");
    if (config_.heads % config_.kv_heads != 0) {
      metadata_.fail(key("attention.head_count_kv"), "is " + std::to_string(config_.kv_heads) +
                                                         ", which does not divide the " +
                                                         std::to_string(config_.heads) + " heads");
    }
    const std::int64_t value_length =
        metadata_.count_or(key("attention.value_length"), heads_max, config_.head_dim);
    if (value_length != config_.head_dim) {
      metadata_.fail(key("attention.value_length"),
                     "differs from the key length, which is not supported");
    }
  }

  /// Tensors decide what metadata leaves open: the vocabulary, tied embeddings,
  /// biases and norms.
  void read_what_tensors_say() {
    const gguf_tensor* embedding = file_.find("token_embd.weight");
    if (embedding != nullptr) {
      const bool fits = embedding->dims.size() == 2 && embedding->dims[0] == config_.hidden_size;
      if (!fits) {
        throw input_error(metadata_.where() + ": tensor \"token_embd.weight\" has dims " +
                          to_string(embedding->dims) + "; the first must be the width, " +
                          std::to_string(config_.hidden_size));
      }
      config_.vocab_size = embedding->dims[1];
    } else if (metadata_.has(key("vocab_size"))) {
      config_.vocab_size = metadata_.count(key("vocab_size"), vocabulary_max);
    } else {
      config_.vocab_size =
          static_cast<std::int64_t>(metadata_.strings("tokenizer.ggml.tokens").size());
    }
    config_.tied_embeddings = file_.find("output.weight") == nullptr;
    config_.qkv_bias = layer_tensor("attn_q.bias") != nullptr;
    config_.output_bias = layer_tensor("attn_output.bias") != nullptr;
    config_.mlp_bias = layer_tensor("ffn_down.bias") != nullptr;
    config_.gated_mlp = file_.tensors.empty() || layer_tensor("ffn_gate.weight") != nullptr;
    config_.qk_norm = layer_tensor("attn_q_norm.weight") != nullptr;
    config_.norms_per_layer = layer_tensor("post_ffw_norm.weight") != nullptr ? 4 : 2;
  }

  double positive(const std::string& name, double fallback) const {
    const double value = metadata_.number_or(name, fallback);
    if (!(value > 0)) metadata_.fail(name, "is " + std::to_string(value) + "; it must be above 0");
    return value;
  }

  void read_rope() {
    rope_config& rope = config_.rope;
    rope.interleaved = architecture_.interleaved;
    rope.theta = positive(key("rope.freq_base"), 10'000);
    const std::int64_t rotated =
        metadata_.count_or(key("rope.dimension_count"), heads_max, config_.head_dim);
    if (rotated > config_.head_dim || rotated % 2 != 0) {
      metadata_.fail(key("rope.dimension_count"),
                     "is " + std::to_string(rotated) + "; an even number up to the head's " +
                         std::to_string(config_.head_dim) + " is allowed");
    }
    if (rotated < config_.head_dim) rope.dimensions = rotated;
    read_rope_scaling(rope);
    read_rope_divisors(rope);
  }

  void read_rope_scaling(rope_config& rope) {
    rope.scaling_name = metadata_.text_or(key("rope.scaling.type"), "none");
    if (rope.scaling_name == "none") {
      // Older files give linear scaling by its factor alone.
      rope.factor = positive(key("rope.scale_linear"), 1);
      if (rope.factor != 1) rope.scaling = rope_scaling::linear;
      return;
    }
    rope.scaling = rope.scaling_name == "linear" ? rope_scaling::linear
                   : rope.scaling_name == "yarn" ? rope_scaling::yarn
                                                 : rope_scaling::other;
    rope.factor = positive(key("rope.scaling.factor"), 1);
    rope.original_positions =
        metadata_.whole_or(key("rope.scaling.original_context_length"), positions_max, 0);
    rope.beta_fast = positive(key("rope.scaling.yarn_beta_fast"), rope.beta_fast);
    rope.beta_slow = positive(key("rope.scaling.yarn_beta_slow"), rope.beta_slow);
    rope.attention_factor = metadata_.number_or(key("rope.scaling.attn_factor"), 0);
  }

  /// Llama 3.1 and later keep their stretched frequencies in a tensor.
  void read_rope_divisors(rope_config& rope) const {
    const gguf_tensor* tensor = file_.find("rope_freqs.weight");
    if (tensor == nullptr) return;
    const std::int64_t rotated = rope.dimensions > 0 ? rope.dimensions : config_.head_dim;
    const auto fail = [&](const std::string& why) {
      throw input_error(metadata_.where() + ": tensor \"rope_freqs.weight\" " + why);
    };
    if (tensor->type != element_type::f32 || tensor->dims.size() != 1 ||
        tensor->dims[0] != rotated / 2) {
      fail("must hold " + std::to_string(rotated / 2) + " F32 numbers");
    }
    rope.divisors.resize(static_cast<std::size_t>(rotated / 2));
    dequantize(tensor->type, tensor->bytes, rope.divisors);
    const bool sound = std::all_of(rope.divisors.begin(), rope.divisors.end(),
                                   [](float d) { return std::isfinite(d) && d > 0; });
    if (!sound) fail("holds a number that is not above 0");
  }

  void read_sliding() {
    const std::int64_t window =
        metadata_.whole_or(key("attention.sliding_window"), positions_max, 0);
    if (window == 0) return;
    const std::string pattern_key = key("attention.sliding_window_pattern");
    const gguf_value* pattern = metadata_.find(pattern_key);
    if (pattern != nullptr && pattern->type == gguf_type::array) {
      config_.slides = metadata_.flags(pattern_key);
      if (static_cast<std::int64_t>(config_.slides.size()) != config_.layers) {
        metadata_.fail(pattern_key, "must hold one bool for each of the " +
                                        std::to_string(config_.layers) + " layers");
      }
    } else {
      const std::int64_t fallback =
          config_.family == "gemma3_text" ? 6 : (config_.family == "gemma2" ? 2 : 0);
      const std::int64_t every = metadata_.whole_or(pattern_key, layers_max, fallback);
      for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
        config_.slides.push_back(every == 0 || (layer + 1) % every != 0);
      }
    }
    if (config_.sliding_layers() == 0) {
      config_.slides.clear();
    } else {
      config_.sliding_window = window;
    }
  }

  void read_rules() {
    config_.norm_epsilon = metadata_.number(key("attention.layer_norm_rms_epsilon"));
    if (!(config_.norm_epsilon > 0)) {
      metadata_.fail(key("attention.layer_norm_rms_epsilon"), "must be above 0");
    }
    if (!is_gemma(config_)) return;
    const bool second = config_.family == "gemma2";
    apply_gemma_rules(config_);
    config_.attention_soft_cap =
        metadata_.number_or(key("attn_logit_softcapping"), second ? 50 : 0);
    config_.final_soft_cap = metadata_.number_or(key("final_logit_softcapping"), second ? 30 : 0);
    if (!second) config_.rope.local_theta = positive(key("rope.freq_base_swa"), 10'000);
    // Not stored. The 27B models (62 and 46 layers) scale by the width of a
    // head's share of the model rather than by that of a head.
    const bool largest = config_.layers == (second ? 46 : 62);
    const std::int64_t scale_width =
        largest ? config_.hidden_size / config_.heads : config_.head_dim;
    config_.attention_scale = 1 / std::sqrt(static_cast<double>(scale_width));
  }

  const gguf_file& file_;
  const gguf_metadata& metadata_;
  architecture architecture_{};
  model_config config_;
};

}  // namespace

model_config gguf_model_config(const gguf_file& file) {
  return config_reader(file).run();
}

}  // namespace octavo::model
