// What happens to a text before it is cut: Unicode normal forms, replacements and
// a prefix, as the "normalizer" of tokenizer.json says.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "model/tokenizer/text_pattern.hpp"

namespace octavo::model {

enum class unicode_form { nfc, nfd, nfkc, nfkd };

/// Puts `text` in front; an empty text stays empty.
struct prepend_step {
  std::string text;
};

struct replace_step {
  text_pattern pattern;
  std::string content;
};

/// A sequence of steps; none of them leaves every text as it is.
class normalizer {
 public:
  using step = std::variant<unicode_form, prepend_step, replace_step>;

  void add(step next) { steps_.push_back(std::move(next)); }
  [[nodiscard]] bool empty() const { return steps_.empty(); }

  /// `text` must be valid UTF-8. A text that goes on from an earlier one is not
  /// `at_start` and gets no prefix.
  [[nodiscard]] std::string apply(std::string_view text, bool at_start) const;

 private:
  std::vector<step> steps_;
};

}  // namespace octavo::model
