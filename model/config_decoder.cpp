// Reads the computing half of a Hugging Face config.json; see the header.
#include "model/config_decoder.hpp"

#include <cmath>

namespace octavo::model {
namespace {

using nlohmann::json;

constexpr std::int64_t positions_max = 1'000'000'000;

/// A number above zero.
double positive_or(const json_fields& file, const std::string& key, double fallback) {
  const double value = file.number_or(key, fallback);
  if (!(value > 0)) file.fail(key, "is " + file.at(key).dump() + "; it must be above 0");
  return value;
}

rope_scaling scaling_of(const std::string& name) {
  if (name == "default" || name.empty()) return rope_scaling::none;
  if (name == "linear") return rope_scaling::linear;
  if (name == "llama3") return rope_scaling::llama3;
  if (name == "yarn") return rope_scaling::yarn;
  return rope_scaling::other;
}

/// yarn's factor on cosine and sine from the two mscale fields, as DeepSeek
/// writes it: m(mscale) / m(mscale_all_dim), m(s) = 0.1 s ln factor + 1.
double mscale_factor(const json_fields& file, double factor) {
  const auto m = [&](const std::string& key) {
    return 0.1 * file.number(key) * std::log(factor) + 1;
  };
  return m("mscale") / m("mscale_all_dim");
}

/// One object of scaling parameters, in the old or in the new spelling.
void read_scaling(const json_fields& file, rope_config& rope) {
  rope.scaling_name = file.text_or("rope_type", file.text_or("type", "default"));
  rope.scaling = scaling_of(rope.scaling_name);
  rope.theta = positive_or(file, "rope_theta", rope.theta);
  if (rope.scaling == rope_scaling::none || rope.scaling == rope_scaling::other) return;
  rope.factor = positive_or(file, "factor", 1);
  rope.original_positions =
      file.count_or("original_max_position_embeddings", positions_max, rope.original_positions);
  rope.low_frequency_factor = positive_or(file, "low_freq_factor", rope.low_frequency_factor);
  rope.high_frequency_factor = positive_or(file, "high_freq_factor", rope.high_frequency_factor);
  rope.beta_fast = positive_or(file, "beta_fast", rope.beta_fast);
  rope.beta_slow = positive_or(file, "beta_slow", rope.beta_slow);
  rope.truncate = file.flag_or("truncate", true);
  if (file.has("attention_factor")) {
    rope.attention_factor = positive_or(file, "attention_factor", 1);
  } else if (rope.scaling == rope_scaling::yarn && file.has("mscale") &&
             file.has("mscale_all_dim")) {
    rope.attention_factor = mscale_factor(file, rope.factor);
  }
}

/// `rope_parameters`, the newer form, may hold one object for each kind of layer.
void read_rope_parameters(const json_fields& parameters, rope_config& rope) {
  if (!parameters.has("full_attention")) {
    read_scaling(parameters, rope);
    return;
  }
  read_scaling(parameters.inner("full_attention"), rope);
  if (parameters.has("sliding_attention")) {
    rope.local_theta =
        positive_or(parameters.inner("sliding_attention"), "rope_theta", rope.local_theta);
  }
}

void read_rope(const json_fields& file, model_config& config) {
  rope_config& rope = config.rope;
  rope.theta = positive_or(file, "rope_theta", config.family == "gemma3_text" ? 1e6 : 10'000);
  if (config.family == "gemma3_text") {
    rope.local_theta = positive_or(file, "rope_local_base_freq", 10'000);
  }
  if (file.has("rope_parameters")) {
    read_rope_parameters(file.inner("rope_parameters"), rope);
  } else if (file.has("rope_scaling")) {
    read_scaling(file.inner("rope_scaling"), rope);
  }
  const double share = positive_or(file, "partial_rotary_factor", 1);
  if (share > 1) file.fail("partial_rotary_factor", "exceeds 1");
  if (share < 1) {
    rope.dimensions = static_cast<std::int64_t>(share * static_cast<double>(config.head_dim));
  }
}

activation activation_of(const std::string& name) {
  if (name == "silu" || name == "swish") return activation::silu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_tanh") return activation::gelu_tanh;
  return activation::other;
}

/// A soft cap: the fallback where the field is missing, none where it is null.
double soft_cap(const json_fields& file, const std::string& key, double fallback) {
  if (!file.object().contains(key)) return fallback;
  return file.has(key) ? positive_or(file, key, 1) : 0;
}

}  // namespace

void apply_gemma_rules(model_config& config) {
  config.mlp_activation = activation::gelu_tanh;
  config.embedding_scale = std::sqrt(static_cast<double>(config.hidden_size));
}

void read_decoder_fields(const json_fields& file, model_config& config) {
  read_rope(file, config);
  config.norm_epsilon = positive_or(file, "rms_norm_eps", 1e-6);
  if (is_gemma(config)) {
    const bool second = config.family == "gemma2";
    apply_gemma_rules(config);
    config.norm_adds_one = true;
    config.attention_scale = 1 / std::sqrt(positive_or(file, "query_pre_attn_scalar", 256));
    config.attention_soft_cap = soft_cap(file, "attn_logit_softcapping", second ? 50 : 0);
    config.final_soft_cap = soft_cap(file, "final_logit_softcapping", second ? 30 : 0);
  } else {
    config.mlp_activation =
        activation_of(file.text_or("hidden_act", file.text_or("hidden_activation", "silu")));
  }
}

}  // namespace octavo::model
