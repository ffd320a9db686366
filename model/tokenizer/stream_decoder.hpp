// Tokens to text one at a time, for streaming: what has been given out never needs
// to be taken back.
#pragma once

#include <string>

#include "core/units.hpp"
#include "model/tokenizer/tokenizer.hpp"
#include "model/tokenizer/utf8.hpp"

namespace octavo::model {

/// Decodes one sequence. All that `push` and `flush` return, put together, equals
/// tokenizer::decode_text of the tokens.
class stream_decoder {
 public:
  explicit stream_decoder(tokenizer words, decode_options options = {})
      : words_(std::move(words)), options_(options) {}

  /// The text that is complete with this token: empty while a code point is
  /// unfinished. Throws input_error for a token outside the vocabulary.
  [[nodiscard]] std::string push(token_id token);
  /// Ends the sequence: an unfinished code point gives U+FFFD.
  [[nodiscard]] std::string flush();
  /// Whether an unfinished code point is held back.
  [[nodiscard]] bool has_pending() const { return assembler_.has_pending(); }

 private:
  tokenizer words_;
  decode_options options_;
  utf8_assembler assembler_;
  bool at_start_ = true;
};

}  // namespace octavo::model
