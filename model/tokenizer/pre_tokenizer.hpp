// Cuts text into the pieces within which byte-pair merges happen, as the
// "pre_tokenizer" of tokenizer.json says.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer/text_pattern.hpp"

namespace octavo::model {

/// What becomes of a stretch that the pattern matches.
enum class split_behavior {
  removed,
  isolated,              ///< a piece of its own
  merged_with_previous,  ///< the end of the piece before it
  merged_with_next,      ///< the beginning of the piece after it
  contiguous,            ///< one piece with the matches that touch it
};

/// Cuts every piece so far by a pattern, each piece seen on its own.
struct split_step {
  text_pattern pattern;
  split_behavior behavior = split_behavior::isolated;
  bool invert = false;  ///< what the pattern does not match is what matches
};

/// When a text gets a prefix.
enum class prefix_scheme {
  never,
  first,   ///< where it is the beginning of what is encoded
  always,  ///< also after an added token
};

/// A change of the text itself, before it is cut: SentencePiece's visible space, or
/// a space in front of the first word.
struct text_preparation {
  std::string replacement = " ";  ///< what a space becomes
  prefix_scheme prefix = prefix_scheme::never;
  /// Any white space in front counts as the prefix, not just the replacement.
  bool any_space_is_prefix = false;
};

class pre_tokenizer {
 public:
  void prepare_by(text_preparation preparation) { preparation_ = std::move(preparation); }
  void add(split_step step) { steps_.push_back(std::move(step)); }

  /// `text` as it is to be cut. `at_start` says whether the encoded text begins here.
  [[nodiscard]] std::string prepare(std::string text, bool at_start) const;

  /// The pieces of `text` (valid UTF-8), in order. They are views into it.
  void split(std::string_view text, std::vector<std::string_view>& pieces) const;

 private:
  text_preparation preparation_;
  std::vector<split_step> steps_;
};

}  // namespace octavo::model
