// The tokenizer that belongs to a checkpoint, whichever form it has.
#pragma once

#include <vector>

#include "model/container/checkpoint.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace octavo::model {

/// From a GGUF file's metadata, or from tokenizer.json beside config.json. Throws
/// input_error naming what is missing or malformed.
[[nodiscard]] tokenizer load_tokenizer(const checkpoint& source);

/// Tokens at which generation ends, ascending: the tokenizer's and those that the
/// model's makers list.
[[nodiscard]] std::vector<token_id> end_tokens_of(const checkpoint& source, const tokenizer& words);

}  // namespace octavo::model
