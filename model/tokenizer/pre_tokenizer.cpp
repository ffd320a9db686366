// Splitting, with the five behaviours of the reference library.
#include "model/tokenizer/pre_tokenizer.hpp"

#include <algorithm>
#include <utility>

#include "model/tokenizer/utf8.hpp"

namespace octavo::model {
namespace {

struct stretch {
  text_range range;
  bool matches;
};

/// The text as matching and other stretches in turn; empty ones are left out.
void cover(std::size_t text_bytes, const std::vector<text_range>& found, bool invert,
           std::vector<stretch>& stretches) {
  stretches.clear();
  std::size_t at = 0;
  for (const text_range match : found) {
    if (match.begin > at) stretches.push_back({{at, match.begin}, invert});
    stretches.push_back({match, !invert});
    at = match.end;
  }
  if (at < text_bytes) stretches.push_back({{at, text_bytes}, invert});
}

void keep_others(std::vector<stretch>& stretches) {
  std::erase_if(stretches, [](const stretch& one) { return one.matches; });
}

/// Joins each stretch to the one before it where `joins(before, one)`, both as they
/// were at first.
template <class Joins>
void join(std::vector<stretch>& stretches, Joins joins) {
  std::vector<stretch> joined;
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    if (i > 0 && joins(stretches[i - 1], stretches[i])) {
      joined.back().range.end = stretches[i].range.end;
    } else {
      joined.push_back(stretches[i]);
    }
  }
  stretches = std::move(joined);
}

void apply(split_behavior behavior, std::vector<stretch>& stretches) {
  switch (behavior) {
    case split_behavior::isolated:
      return;
    case split_behavior::removed:
      return keep_others(stretches);
    case split_behavior::contiguous:
      return join(stretches, [](auto& before, auto& one) { return before.matches == one.matches; });
    case split_behavior::merged_with_previous:
      return join(stretches,
                  [](auto& before, auto& one) { return one.matches && !before.matches; });
    case split_behavior::merged_with_next:
      return join(stretches,
                  [](auto& before, auto& one) { return before.matches && !one.matches; });
  }
}

void replace_spaces(std::string& text, const std::string& replacement) {
  std::string replaced;
  replaced.reserve(text.size());
  for (const char c : text) {
    if (c == ' ') {
      replaced += replacement;
    } else {
      replaced += c;
    }
  }
  text = std::move(replaced);
}

}  // namespace

std::string pre_tokenizer::prepare(std::string text, bool at_start) const {
  if (text.empty()) return text;
  if (preparation_.replacement != " ") replace_spaces(text, preparation_.replacement);
  if (preparation_.prefix == prefix_scheme::never) return text;
  if (preparation_.prefix == prefix_scheme::first && !at_start) return text;
  std::size_t at = 0;
  const bool has_prefix = preparation_.any_space_is_prefix
                              ? is_white_space(read_code_point(text, at))
                              : text.starts_with(preparation_.replacement);
  return has_prefix ? text : preparation_.replacement + text;
}

void pre_tokenizer::split(std::string_view text, std::vector<std::string_view>& pieces) const {
  pieces.clear();
  if (!text.empty()) pieces.push_back(text);
  std::vector<std::string_view> whole;
  std::vector<text_range> found;
  std::vector<stretch> stretches;
  for (const split_step& step : steps_) {
    whole.swap(pieces);
    pieces.clear();
    for (const std::string_view piece : whole) {
      step.pattern.find_all(piece, found);
      if (found.empty() && !step.invert) {
        pieces.push_back(piece);
        continue;
      }
      cover(piece.size(), found, step.invert, stretches);
      apply(step.behavior, stretches);
      for (const stretch& one : stretches) {
        pieces.push_back(piece.substr(one.range.begin, one.range.end - one.range.begin));
      }
    }
  }
}

}  // namespace octavo::model
