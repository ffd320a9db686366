// The text steps of tokenizer.json: normalizer, pre_tokenizer, post_processor and
// decoder. Private to model/tokenizer.
#pragma once

#include "model/tokenizer/json_field.hpp"
#include "model/tokenizer/normalizer.hpp"
#include "model/tokenizer/pipeline.hpp"
#include "model/tokenizer/pre_tokenizer.hpp"

namespace octavo::model {

/// Each throws input_error, naming the field and the type, for a step that is not
/// supported: leaving it out would give wrong tokens without a sign.
[[nodiscard]] normalizer load_normalizer(const json_field& field);

struct loaded_pre_tokenizer {
  pre_tokenizer pre;
  bool byte_level = false;
};
[[nodiscard]] loaded_pre_tokenizer load_pre_tokenizer(const json_field& field);

/// The tokens put around a text, into `parts.prefix` and `parts.suffix`.
void load_post_processor(const json_field& field, pipeline& parts);

/// Whether decoding drops a space at the beginning; checks the rest.
[[nodiscard]] bool load_decoder(const json_field& field);

}  // namespace octavo::model
