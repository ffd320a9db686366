// Where models keep their chat templates, and the special tokens these may name.
#pragma once

#include <map>
#include <string>

#include "model/container/checkpoint.hpp"

namespace octavo::model {

struct chat_source {
  /// Jinja by name; "default" is the usual one.
  std::map<std::string, std::string, std::less<>> templates;
  /// "bos_token" and the like, and their text.
  std::map<std::string, std::string, std::less<>> special_tokens;
};

/// Reads a GGUF file's keys tokenizer.chat_template and tokenizer.chat_template.NAME, or
/// a directory's chat_template.jinja or tokenizer_config.json. Templates may be missing.
/// Throws input_error naming the field that is malformed.
[[nodiscard]] chat_source read_chat_source(const checkpoint& source);

/// The same from the text of a tokenizer_config.json.
[[nodiscard]] chat_source parse_chat_source(std::string_view tokenizer_config_json);

}  // namespace octavo::model
