// Text that knows which of its bytes may be trusted to spell control tokens.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer/text_pattern.hpp"

namespace octavo::model {

/// Text put together from trusted parts (a chat template's) and others (a user's).
class marked_text {
 public:
  void append(std::string_view text, bool trusted) {
    if (trusted && !text.empty()) {
      if (!trusted_.empty() && trusted_.back().end == text_.size()) {
        trusted_.back().end += text.size();
      } else {
        trusted_.push_back({text_.size(), text_.size() + text.size()});
      }
    }
    text_ += text;
  }

  [[nodiscard]] const std::string& text() const { return text_; }
  /// The trusted ranges, ascending, not touching each other.
  [[nodiscard]] const std::vector<text_range>& trusted() const { return trusted_; }

  /// Calls `visit(text, trusted)` for the runs of equal trust within `range`.
  template <class Visit>
  void for_each_run(text_range range, Visit&& visit) const {
    const auto give = [&](std::size_t begin, std::size_t end, bool is_trusted) {
      if (begin < end) visit(std::string_view(text_).substr(begin, end - begin), is_trusted);
    };
    std::size_t at = range.begin;
    // Found by halves: texts of a template's making may have very many ranges.
    for (auto next = std::ranges::upper_bound(trusted_, at, {}, &text_range::end);
         next != trusted_.end() && next->begin < range.end; ++next) {
      const text_range stretch = *next;
      const std::size_t begin = std::max(stretch.begin, at);
      const std::size_t end = std::min(stretch.end, range.end);
      give(at, begin, false);
      give(begin, end, true);
      at = end;
    }
    give(at, range.end, false);
  }

 private:
  std::string text_;
  std::vector<text_range> trusted_;
};

}  // namespace octavo::model
