// The split patterns of well-known tokenizers.
#pragma once

#include <string_view>

#include "model/tokenizer/pre_tokenizer.hpp"

namespace octavo::model {

/// GPT-2's pattern, the default of the "ByteLevel" pre-tokenizer.
extern const std::string_view gpt2_pattern;

/// The splitting that the GGUF key tokenizer.ggml.pre names. Throws input_error for a
/// name that is not known: guessing would give wrong tokens without a sign.
[[nodiscard]] pre_tokenizer pre_tokenizer_named(std::string_view name);

/// Whether a piece that is itself a token stays whole under that name.
[[nodiscard]] bool ignores_merges(std::string_view name);

/// Whether the first token is added by default under that name.
[[nodiscard]] bool adds_bos_by_default(std::string_view name);

}  // namespace octavo::model
