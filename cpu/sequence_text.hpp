// The text side of one running sequence: tokens become text without cutting a
// character, and a stop string ends it, also where it is spread over tokens.
//
// Text is held back only while it could still become a stop string, so a stream
// is not delayed by stop strings that do not begin.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/sampling_parameters.hpp"
#include "core/step.hpp"
#include "model/tokenizer/stream_decoder.hpp"

namespace octavo::cpu {

class sequence_text {
 public:
  sequence_text(const model::tokenizer& words, const sampling_parameters& how);

  /// Takes the next token and appends to `out` the text that is certain now.
  /// Returns stop_string where one is complete: nothing after it appears. Within
  /// the first `min_tokens` tokens none counts.
  finish_kind push(token_id token, std::string& out);
  /// The end of the sequence for another reason: what was held back comes out.
  void finish(std::string& out);

 private:
  [[nodiscard]] std::size_t possible_stop_start() const;

  model::stream_decoder decoder_;
  std::vector<std::string> stops_;
  bool include_stop_ = false;
  /// Tokens to come during which a stop string does not end the text.
  std::int32_t protected_tokens_ = 0;
  std::string held_;
};

}  // namespace octavo::cpu
