// Reads Hugging Face config.json files into model_config. One reader serves all
// dense families: they share key names and differ in defaults, which are here.
#include <array>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "model/config.hpp"
#include "model/config_decoder.hpp"
#include "model/json_fields.hpp"

namespace octavo::model {
namespace {

using nlohmann::json;
using fields = json_fields;

// The largest numbers that are read.
constexpr std::int64_t width_max = 1'000'000;
constexpr std::int64_t mlp_width_max = 10'000'000;
constexpr std::int64_t layers_max = 10'000;
constexpr std::int64_t heads_max = 10'000;
constexpr std::int64_t vocabulary_max = 100'000'000;
constexpr std::int64_t positions_max = 1'000'000'000;

/// What a family means when its file does not say.
struct family_defaults {
  std::string_view family;
  bool tied_embeddings = false;
  bool qkv_bias = false;
  bool qk_norm = false;
  std::int64_t norms_per_layer = 2;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocab_size = 0;
  std::int64_t max_positions = 0;
  std::int64_t sliding_window = 0;
  /// Every n-th layer attends to everything; the others slide.
  std::int64_t sliding_pattern = 0;
};

constexpr std::array known_families{
    family_defaults{.family = "llama"},
    family_defaults{.family = "mistral"},
    family_defaults{.family = "qwen2", .qkv_bias = true},
    family_defaults{.family = "qwen3", .qk_norm = true, .head_dim = 128},
    family_defaults{.family = "gemma2",
                    .tied_embeddings = true,
                    .norms_per_layer = 4,
                    .head_dim = 256,
                    .sliding_window = 4096,
                    .sliding_pattern = 2},
    family_defaults{.family = "gemma3_text",
                    .tied_embeddings = true,
                    .qk_norm = true,
                    .norms_per_layer = 4,
                    .heads = 8,
                    .kv_heads = 4,
                    .head_dim = 256,
                    .vocab_size = 262208,
                    .max_positions = 131072,
                    .sliding_window = 4096,
                    .sliding_pattern = 6},
};

family_defaults defaults_for(model_config& config) {
  for (const family_defaults& known : known_families) {
    if (known.family == config.family) return known;
  }
  config.notes.push_back("architecture \"" + config.family +
                         "\" is not known; read as a dense decoder with a gated MLP, two norms a "
                         "layer and no biases unless the file says so");
  return {};
}

/// Features whose memory and cost this reader would get wrong.
void refuse_unsupported(const fields& file) {
  for (const char* key : {"num_local_experts", "num_experts", "n_routed_experts",
                          "moe_intermediate_size", "num_experts_per_tok"}) {
    if (file.above_one(key)) file.fail(key, "marks a mixture of experts, which is not supported");
  }
  if (file.has("kv_lora_rank")) {
    file.fail("kv_lora_rank", "marks latent attention, which is not supported");
  }
  for (const char* key : {"ssm_state_size", "mamba_d_state", "state_size"}) {
    if (file.has(key)) file.fail(key, "marks a state-space model, which is not supported");
  }
  if (file.flag_or("is_encoder_decoder", false)) {
    file.fail("is_encoder_decoder", "is true; only decoder-only models are supported");
  }
}

void slides_from_layer_types(const fields& file, model_config& config) {
  const json& types = file.at("layer_types");
  if (!types.is_array() || static_cast<std::int64_t>(types.size()) != config.layers) {
    file.fail("layer_types",
              "must list one kind for each of the " + std::to_string(config.layers) + " layers");
  }
  for (const json& type : types) {
    if (type != "full_attention" && type != "sliding_attention") {
      file.fail("layer_types",
                "holds " + type.dump() + "; full_attention and sliding_attention are supported");
    }
    config.slides.push_back(type == "sliding_attention");
  }
}

/// Which layers slide: an explicit list, a repeating pattern, a first full part
/// (Qwen), or all of them (Mistral).
void read_sliding(const fields& file, const family_defaults& defaults, model_config& config) {
  const bool off = !file.flag_or("use_sliding_window", true);
  const std::int64_t window =
      file.count_or("sliding_window", positions_max, defaults.sliding_window);
  if (off || window == 0) return;
  if (file.has("layer_types")) {
    slides_from_layer_types(file, config);
  } else {
    const std::int64_t pattern =
        file.count_or("sliding_window_pattern", layers_max, defaults.sliding_pattern);
    if (pattern == 0 && config.family != "mistral") {
      config.notes.push_back(
          "no list of layer kinds: the window is taken to hold in all layers "
          "that the file does not exempt");
    }
    const bool qwen = config.family == "qwen2" || config.family == "qwen3";
    const std::int64_t first = qwen ? file.count_or("max_window_layers", layers_max, 0) : 0;
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      const bool full = (pattern > 0 && (layer + 1) % pattern == 0) || layer < first;
      config.slides.push_back(!full);
    }
  }
  if (config.sliding_layers() == 0) {
    config.slides.clear();
  } else {
    config.sliding_window = window;
  }
}

void read_biases(const fields& file, const family_defaults& defaults, model_config& config) {
  const bool attention_bias = file.flag_or("attention_bias", false);
  config.qkv_bias = defaults.qkv_bias || attention_bias;
  // Qwen2 puts biases on q, k and v only, and its file does not mention them.
  config.output_bias = attention_bias && config.family != "qwen2";
  config.mlp_bias = file.flag_or("mlp_bias", false);
}

model_config read_config(const fields& file, std::string family) {
  model_config config;
  config.family = std::move(family);
  refuse_unsupported(file);
  const family_defaults defaults = defaults_for(config);
  const auto count = [&](const char* key, std::int64_t most, std::int64_t fallback) {
    return fallback > 0 ? file.count_or(key, most, fallback) : file.count(key, most);
  };
  config.hidden_size = file.count("hidden_size", width_max);
  config.layers = file.count("num_hidden_layers", layers_max);
  config.heads = count("num_attention_heads", heads_max, defaults.heads);
  config.kv_heads = file.count_or("num_key_value_heads", heads_max,
                                  defaults.kv_heads > 0 ? defaults.kv_heads : config.heads);
  config.intermediate_size = file.count("intermediate_size", mlp_width_max);
  config.vocab_size = count("vocab_size", vocabulary_max, defaults.vocab_size);
  config.max_positions = count("max_position_embeddings", positions_max, defaults.max_positions);
  const std::int64_t even_share = config.hidden_size / config.heads;
  config.head_dim =
      file.count_or("head_dim", heads_max, defaults.head_dim > 0 ? defaults.head_dim : even_share);
  if (config.head_dim < 1) file.fail("num_attention_heads", "exceeds hidden_size");
  if (config.heads % config.kv_heads != 0) {
    file.fail("num_key_value_heads", "is " + std::to_string(config.kv_heads) +
                                         ", which does not divide num_attention_heads " +
                                         std::to_string(config.heads));
  }
  config.tied_embeddings = file.flag_or("tie_word_embeddings", defaults.tied_embeddings);
  config.qk_norm = file.flag_or("use_qk_norm", defaults.qk_norm);
  config.norms_per_layer = defaults.norms_per_layer;
  read_biases(file, defaults, config);
  read_sliding(file, defaults, config);
  read_decoder_fields(file, config);
  return config;
}

}  // namespace

model_config parse_config(std::string_view text, std::string_view where) {
  const json document = json::parse(text, nullptr, false);
  const std::string place{where};
  if (document.is_discarded()) throw input_error(place + ": not valid JSON");
  if (!document.is_object()) throw input_error(place + ": a JSON object is expected");
  const fields top{document, place};
  model_config config;
  const bool nested = top.has("text_config");
  if (nested) {
    const json& inner = top.at("text_config");
    if (!inner.is_object()) top.fail("text_config", "must be an object");
    const fields text_part{inner, place + " (text_config)"};
    std::string family = text_part.text_or("model_type", top.text_or("model_type", "unknown"));
    if (family == "gemma3") family = "gemma3_text";
    config = read_config(text_part, family);
    config.notes.push_back("a multimodal model: only its language model is counted");
  } else {
    config = read_config(top, top.text_or("model_type", "unknown"));
  }
  config.name = top.text_or("name", top.text_or("_name_or_path", config.family));
  if (top.has("quantization_config")) {
    config.notes.push_back("the file declares quantized weights; choose --quantization to match");
  }
  return config;
}

model_config load_config(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  if (!file) throw input_error(path + ": cannot be opened");
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  return parse_config(text, path);
}

}  // namespace octavo::model
