// See string_literal.hpp.
#include "model/chat/jinja/string_literal.hpp"

#include <charconv>
#include <cstdint>

#include "model/chat/jinja/limits.hpp"
#include "model/tokenizer/utf8.hpp"

namespace octavo::model::jinja {
namespace {

/// The one-letter escapes; 0 for others.
char simple_escape(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'v':
      return '\v';
    case '\\':
    case '\'':
    case '"':
      return c;
    default:
      return 0;
  }
}

std::size_t hex_digits(char c) {
  return c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
}

/// Appends the character whose number stands at `at` in `base`; returns the offset
/// behind it.
std::size_t append_numbered(std::string_view literal, std::size_t at, std::size_t digits, int base,
                            bool all, std::string& text, int line) {
  const std::string_view number = literal.substr(at, digits);
  std::uint32_t code = 0;
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), code, base);
  const auto read = static_cast<std::size_t>(end - number.data());
  const bool is_character = code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
  if (error != std::errc{} || (all && read != digits) || !is_character) {
    fail_at(line, "a string has an escape that is no character: \\" +
                      std::string(literal.substr(at - 1, digits + 1)));
  }
  append_code_point(text, code);
  return at + read;
}

}  // namespace

std::string unescape(std::string_view literal, int line) {
  std::string text;
  text.reserve(literal.size());
  std::size_t at = 0;
  while (at < literal.size()) {
    const char c = literal[at++];
    if (c != '\\' || at == literal.size()) {
      text += c;
      continue;
    }
    const char escape = literal[at];
    if (const char simple = simple_escape(escape)) {
      text += simple;
      ++at;
    } else if (const std::size_t digits = hex_digits(escape)) {
      at = append_numbered(literal, at + 1, digits, 16, true, text, line);
    } else if (escape >= '0' && escape <= '7') {
      at = append_numbered(literal, at, 3, 8, false, text, line);
    } else if (escape == '\n') {
      ++at;
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace octavo::model::jinja
