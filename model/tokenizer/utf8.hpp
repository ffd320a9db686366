// UTF-8 and the few Unicode properties that tokenizers ask for.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace octavo::model {

/// What the bytes at the front of a text are.
enum class utf8_state {
  valid,       ///< one whole code point
  invalid,     ///< bytes that no continuation can make valid
  incomplete,  ///< the beginning of a code point that the text's end cuts off
};

/// One step through bytes: how many belong together, and what they are.
struct utf8_step {
  std::size_t length = 0;
  utf8_state state = utf8_state::valid;
};

/// Reads the front of `text`, which must not be empty. An invalid step covers the
/// longest prefix that begins a code point (Unicode 15, section 3.9, "maximal
/// subpart"), so that one U+FFFD per step gives what other decoders give.
[[nodiscard]] utf8_step next_utf8(std::string_view text);

/// The offset of the first byte that is not valid UTF-8, if there is one.
[[nodiscard]] std::optional<std::size_t> first_invalid_utf8(std::string_view text);

/// The code point at `text[at]`; the text must be valid there. Moves `at` past it.
[[nodiscard]] char32_t read_code_point(std::string_view text, std::size_t& at);

void append_code_point(std::string& text, char32_t code_point);

/// The Unicode property White_Space.
[[nodiscard]] bool is_white_space(char32_t code_point);

/// Letters, marks, digits and connectors: what borders a single-word token.
[[nodiscard]] bool is_word_character(char32_t code_point);

/// Turns bytes that arrive in arbitrary cuts into UTF-8 text: an unfinished code
/// point waits for its rest, and bytes that cannot become one give U+FFFD.
class utf8_assembler {
 public:
  /// Appends to `text` all that is complete now.
  void push(std::string_view bytes, std::string& text);
  /// Ends the stream: an unfinished code point gives U+FFFD.
  void flush(std::string& text);

  [[nodiscard]] bool has_pending() const { return !pending_.empty(); }

 private:
  std::string pending_;
};

}  // namespace octavo::model
