// Cuts a template into tokens: text, and what stands between {{ }} and {% %}.
// Comments, raw blocks and the control of white space are dealt with here, with
// trim_blocks and lstrip_blocks on, as chat templates are written for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/chat/jinja/limits.hpp"

namespace octavo::model::jinja {

enum class token_type {
  text,  ///< stands outside of tags
  print_begin,
  print_end,
  block_begin,
  block_end,
  name,
  string,  ///< unescaped, without quotes
  integer,
  floating,
  symbol,  ///< an operator or bracket
  end,
};

struct token {
  token_type type{};
  std::string text;
  int line = 1;
};

/// Cuts `source`, which must be UTF-8. The last token is `end`. Throws input_error
/// naming the line.
[[nodiscard]] std::vector<token> tokenize(std::string_view source, const limits& allowed);

/// How messages name a token.
[[nodiscard]] std::string describe(const token& token);

}  // namespace octavo::model::jinja
