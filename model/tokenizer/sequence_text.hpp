// The text side of one running sequence: tokens become text without cutting a
// character, and a stop string ends it, also where it is spread over tokens.
//
// Text is held back only while it could still become a stop string, so a stream
// is not delayed by stop strings that do not begin.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/sampling_parameters.hpp"
#include "core/step.hpp"
#include "model/tokenizer/stream_decoder.hpp"

namespace octavo::model {

class sequence_text {
 public:
  /// `end_tokens` end the sequence unless `how` ignores the end; they outlive this.
  sequence_text(tokenizer words, const sampling_parameters& how,
                std::span<const token_id> end_tokens = {});

  /// Takes the next token as its text and appends to `out` what is certain now.
  /// Returns stop_string where one is complete: nothing after it appears. Within
  /// the first `min_tokens` tokens none counts.
  finish_kind push(token_id token, std::string& out);
  /// The end of the sequence for another reason: what was held back comes out.
  void finish(std::string& out);
  /// Takes the next token as a step's result and says whether it ends the sequence. An
  /// end token or a stop token has no text. `is_last`: the sequence ends in any case.
  finish_kind take(token_id token, bool is_last, std::string& out);

  /// The stop string that push() or take() has found, else nothing.
  [[nodiscard]] const std::string& found_stop() const { return found_; }

 private:
  [[nodiscard]] finish_kind kind_of(token_id token) const;
  [[nodiscard]] std::size_t possible_stop_start() const;

  stream_decoder decoder_;
  std::vector<std::string> stops_;
  std::vector<token_id> stop_tokens_;
  std::span<const token_id> end_tokens_;
  bool include_stop_ = false;
  /// Tokens to come during which no stop string or stop token ends the text.
  std::int32_t protected_tokens_ = 0;
  std::string held_;
  std::string found_;
};

}  // namespace octavo::model
