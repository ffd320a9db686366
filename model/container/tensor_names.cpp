// The table of names; see the header.
#include "model/container/tensor_names.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace octavo::model {
namespace {

using name_pair = std::pair<std::string_view, std::string_view>;

constexpr std::array layer_modules{
    name_pair{"input_layernorm", "attn_norm"},
    name_pair{"self_attn.q_proj", "attn_q"},
    name_pair{"self_attn.k_proj", "attn_k"},
    name_pair{"self_attn.v_proj", "attn_v"},
    name_pair{"self_attn.o_proj", "attn_output"},
    name_pair{"self_attn.q_norm", "attn_q_norm"},
    name_pair{"self_attn.k_norm", "attn_k_norm"},
    name_pair{"pre_feedforward_layernorm", "ffn_norm"},
    name_pair{"post_feedforward_layernorm", "post_ffw_norm"},
    name_pair{"mlp.gate_proj", "ffn_gate"},
    name_pair{"mlp.up_proj", "ffn_up"},
    name_pair{"mlp.down_proj", "ffn_down"},
};

/// Removes `prefix` where `text` begins with it.
bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::string layer_module(std::string_view rest, bool output_norms) {
  const auto dot = rest.find('.');
  if (dot == std::string_view::npos || dot == 0 || dot > 4) return {};
  const std::string_view layer = rest.substr(0, dot);
  const bool digits =
      std::all_of(layer.begin(), layer.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || (layer.size() > 1 && layer.front() == '0')) return {};
  const std::string_view module = rest.substr(dot + 1);
  const std::string prefix = "blk." + std::string(layer) + ".";
  if (module == "post_attention_layernorm") {
    return prefix + (output_norms ? "post_attention_norm" : "ffn_norm");
  }
  const auto* found = std::find_if(layer_modules.begin(), layer_modules.end(),
                                   [&](const name_pair& pair) { return pair.first == module; });
  return found == layer_modules.end() ? "" : prefix + std::string(found->second);
}

}  // namespace

std::string canonical_tensor_name(std::string_view name, bool output_norms) {
  const auto dot = name.rfind('.');
  if (dot == std::string_view::npos) return {};
  std::string_view module = name.substr(0, dot);
  const std::string suffix(name.substr(dot));
  // Multimodal checkpoints hold the decoder one level deeper.
  take_prefix(module, "language_model.");
  if (module == "lm_head") return "output" + suffix;
  if (!take_prefix(module, "model.")) return {};
  take_prefix(module, "language_model.");
  if (module == "embed_tokens") return "token_embd" + suffix;
  if (module == "norm") return "output_norm" + suffix;
  if (!take_prefix(module, "layers.")) return {};
  const std::string mapped = layer_module(module, output_norms);
  return mapped.empty() ? "" : mapped + suffix;
}

}  // namespace octavo::model
