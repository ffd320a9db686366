// What templates do to texts, as Python's `str` does it: by code points, and without
// losing which bytes may be trusted.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/chat/jinja/value.hpp"

namespace octavo::model::jinja {

[[nodiscard]] std::int64_t count_code_points(std::string_view text);
/// Where the code point of that number begins; the text's size if there are fewer.
[[nodiscard]] std::size_t offset_of_code_point(std::string_view text, std::int64_t number);

/// Bytes [begin, end), which must not cut a code point.
[[nodiscard]] marked_text part_of(const marked_text& text, std::size_t begin, std::size_t end);
void append(marked_text& to, const marked_text& more);
/// One text for each code point.
[[nodiscard]] value_list characters_of(const marked_text& text);

enum class side { left, right, both };
/// Without the code points of `characters` at its sides; without white space if there
/// are none given.
[[nodiscard]] marked_text strip(const marked_text& text, std::optional<std::string_view> characters,
                                side where);

/// The parts between separators (which must not be empty), at most `most` + 1 if
/// `most` is not negative, counted from the left or the right.
[[nodiscard]] std::vector<marked_text> split(const marked_text& text, std::string_view separator,
                                             std::int64_t most, bool from_right);
/// The parts between runs of white space.
[[nodiscard]] std::vector<marked_text> split_at_white_space(const marked_text& text,
                                                            std::int64_t most);
/// The lines, with or without their ends.
[[nodiscard]] std::vector<marked_text> split_lines(const marked_text& text, bool keep_ends);

/// With at most `most` (all, if negative) occurrences of `old` replaced.
[[nodiscard]] marked_text replace(const marked_text& text, std::string_view old,
                                  const marked_text& replacement, std::int64_t most, budget& work);

enum class letter_case {
  upper,
  lower,
  capitalize,  ///< the first letter large, all others small
  title,       ///< large behind what is no letter (str.title)
  words,       ///< large at the beginning of words (the filter `title`)
};
/// Letter by letter, with Unicode's simple mappings.
[[nodiscard]] marked_text with_case(const marked_text& text, letter_case wanted);

}  // namespace octavo::model::jinja
