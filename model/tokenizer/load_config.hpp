// What tokenizer_config.json adds to tokenizer.json. Private to model/tokenizer.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace octavo::model {

/// The first and last tokens, by their texts, and whether they are added.
struct tokenizer_config {
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
};

/// Throws input_error, naming the field, for malformed content.
[[nodiscard]] tokenizer_config parse_tokenizer_config(std::string_view text);

}  // namespace octavo::model
