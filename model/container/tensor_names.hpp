// One naming of a decoder's tensors over the names that files use.
//
//   token_embd, output_norm, output
//   blk.N. attn_norm, attn_q, attn_k, attn_v, attn_output, attn_q_norm, attn_k_norm,
//          ffn_norm, ffn_gate, ffn_up, ffn_down, post_attention_norm, post_ffw_norm
//
// each followed by .weight, .bias or what else belongs to a quantized weight
// (.qweight, .scales, .weight_scale, …). These are the names in GGUF files; those
// of Hugging Face checkpoints are mapped onto them.
#pragma once

#include <string>
#include <string_view>

namespace octavo::model {

/// The name of a Hugging Face tensor in this naming; empty where it belongs to
/// no part of the decoder (a vision tower, a cached table).
///
/// `output_norms`: does the family norm the outputs of attention and MLP too
/// (Gemma 2 and 3)? Elsewhere post_attention_layernorm is the norm before the MLP.
[[nodiscard]] std::string canonical_tensor_name(std::string_view name, bool output_norms);

}  // namespace octavo::model
