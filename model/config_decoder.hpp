// The part of config.json that decides how a forward pass computes rather than
// how large it is: rotary embedding, norms, activation, scales and soft caps.
#pragma once

#include "model/config.hpp"
#include "model/json_fields.hpp"

namespace octavo::model {

/// Fills in the fields behind "What a forward pass needs". The shape must have
/// been read. Throws input_error naming a field that is ill-typed.
void read_decoder_fields(const json_fields& file, model_config& config);

/// What Gemma 2 and 3 do whatever their files say.
void apply_gemma_rules(model_config& config);

[[nodiscard]] inline bool is_gemma(const model_config& config) {
  return config.family == "gemma2" || config.family == "gemma3_text";
}

}  // namespace octavo::model
