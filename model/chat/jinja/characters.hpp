// Kinds of characters as Python's `str` sees them.
#pragma once

#include <utf8proc.h>

#include <string_view>

#include "model/tokenizer/utf8.hpp"

namespace octavo::model::jinja {

[[nodiscard]] constexpr bool is_ascii_digit(char c) {
  return c >= '0' && c <= '9';
}
[[nodiscard]] constexpr bool is_ascii_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// str.isspace: Unicode's White_Space and the four separators of ASCII.
[[nodiscard]] inline bool is_python_space(char32_t c) {
  return (c >= 0x1C && c <= 0x1F) || is_white_space(c);
}

/// The Unicode category of letters, and that of decimal digits.
[[nodiscard]] inline bool is_letter(char32_t c) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}
[[nodiscard]] inline bool is_decimal(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c)) == UTF8PROC_CATEGORY_ND;
}
[[nodiscard]] inline bool is_letter_or_decimal(char32_t c) {
  return is_letter(c) || is_decimal(c);
}

/// The first offset from `at` on that is no white space.
[[nodiscard]] inline std::size_t skip_white_space(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    std::size_t next = at;
    if (!is_python_space(read_code_point(text, next))) break;
    at = next;
  }
  return at;
}

/// The offset of the code point that ends at `end`, which must not be 0.
[[nodiscard]] inline std::size_t code_point_before(std::string_view text, std::size_t end) {
  --end;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return end;
}

[[nodiscard]] inline std::string_view without_white_space_behind(std::string_view text) {
  while (!text.empty()) {
    const std::size_t last = code_point_before(text, text.size());
    std::size_t at = last;
    if (!is_python_space(read_code_point(text, at))) break;
    text = text.substr(0, last);
  }
  return text;
}

}  // namespace octavo::model::jinja
