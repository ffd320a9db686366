// Patterns that cut text: a regular expression as tokenizer.json writes them
// (Oniguruma's syntax), run by PCRE2 with its just-in-time compiler; or plain text.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::model {

/// A stretch of a text, in bytes, end excluded.
struct text_range {
  std::size_t begin = 0;
  std::size_t end = 0;

  friend bool operator==(text_range, text_range) = default;
};

/// A compiled pattern; safe to use from several threads.
class text_pattern {
 public:
  /// Compiles a regular expression with Unicode classes. Throws input_error, which
  /// begins with `where`, if it is malformed or uses what differs between the two
  /// engines and is not translated (class intersection, \h).
  [[nodiscard]] static text_pattern regex(std::string_view expression, const std::string& where);
  /// Finds `text` as it stands; it must not be empty.
  [[nodiscard]] static text_pattern literal(std::string text, const std::string& where);

  /// All non-overlapping, non-empty matches from left to right, in `found`. `text`
  /// must be valid UTF-8. Throws input_error if the expression needs more
  /// backtracking than a limit that grows linearly with the text.
  void find_all(std::string_view text, std::vector<text_range>& found) const;

 private:
  struct compiled;

  void find_regex(std::string_view text, std::vector<text_range>& found) const;
  void find_literal(std::string_view text, std::vector<text_range>& found) const;

  std::string source_;
  std::shared_ptr<const compiled> regex_;
};

/// `expression` in PCRE2's dialect: white space and word characters mean what the
/// Unicode standard says. Throws input_error as text_pattern::regex does.
[[nodiscard]] std::string to_pcre2_dialect(std::string_view expression, const std::string& where);

}  // namespace octavo::model
