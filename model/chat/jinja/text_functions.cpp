// See text_functions.hpp.
#include "model/chat/jinja/text_functions.hpp"

#include <utf8proc.h>

#include <algorithm>

#include "model/chat/jinja/characters.hpp"

namespace octavo::model::jinja {
namespace {

bool begins_code_point(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
}

/// What has an upper and a lower form (str.title begins words behind all else).
bool is_cased(char32_t c) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LT;
}

/// The characters behind which the filter `title` begins a word.
bool ends_word(char32_t c) {
  return is_python_space(c) || std::u32string_view(U"-({[<").find(c) != std::u32string_view::npos;
}

char32_t upper_of(char32_t c) {
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}
char32_t lower_of(char32_t c) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}
char32_t title_of(char32_t c) {
  return static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c)));
}

bool is_line_end(char32_t c) {
  return (c >= '\n' && c <= '\r') || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

class set_of_characters {
 public:
  explicit set_of_characters(std::optional<std::string_view> characters) : listed_(characters) {
    std::size_t at = 0;
    while (listed_ && at < listed_->size()) codes_ += read_code_point(*listed_, at);
  }
  [[nodiscard]] bool has(char32_t c) const {
    return listed_ ? codes_.find(c) != std::u32string::npos : is_python_space(c);
  }

 private:
  std::optional<std::string_view> listed_;
  std::u32string codes_;
};

/// Changes case from left to right.
class case_mapper {
 public:
  explicit case_mapper(letter_case wanted) : wanted_(wanted) {}

  char32_t operator()(char32_t c) {
    const bool begins = begins_;
    if (wanted_ == letter_case::capitalize) begins_ = false;
    if (wanted_ == letter_case::title) begins_ = !is_cased(c);
    if (wanted_ == letter_case::words) begins_ = ends_word(c);
    switch (wanted_) {
      case letter_case::upper:
        return upper_of(c);
      case letter_case::lower:
        return lower_of(c);
      case letter_case::words:
        return begins ? upper_of(c) : lower_of(c);
      default:
        return begins ? title_of(c) : lower_of(c);
    }
  }

 private:
  letter_case wanted_;
  bool begins_ = true;
};

}  // namespace

std::int64_t count_code_points(std::string_view text) {
  return std::ranges::count_if(text, begins_code_point);
}

std::size_t offset_of_code_point(std::string_view text, std::int64_t number) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (begins_code_point(text[at]) && number-- == 0) return at;
  }
  return text.size();
}

marked_text part_of(const marked_text& text, std::size_t begin, std::size_t end) {
  marked_text part;
  text.for_each_run({begin, end},
                    [&](std::string_view run, bool trusted) { part.append(run, trusted); });
  return part;
}

void append(marked_text& to, const marked_text& more) {
  more.for_each_run({0, more.text().size()},
                    [&](std::string_view run, bool trusted) { to.append(run, trusted); });
}

value_list characters_of(const marked_text& text) {
  value_list characters;
  std::size_t at = 0;
  while (at < text.text().size()) {
    const std::size_t begin = at;
    static_cast<void>(read_code_point(text.text(), at));
    characters.push_back(make_text(part_of(text, begin, at)));
  }
  return characters;
}

marked_text strip(const marked_text& text, std::optional<std::string_view> characters, side where) {
  const set_of_characters stripped(characters);
  const std::string& all = text.text();
  std::size_t begin = 0;
  std::size_t end = all.size();
  while (where != side::right && begin < end) {
    std::size_t next = begin;
    if (!stripped.has(read_code_point(all, next))) break;
    begin = next;
  }
  while (where != side::left && begin < end) {
    const std::size_t last = code_point_before(all, end);
    std::size_t at = last;
    if (!stripped.has(read_code_point(all, at))) break;
    end = last;
  }
  return part_of(text, begin, end);
}

std::vector<marked_text> split(const marked_text& text, std::string_view separator,
                               std::int64_t most, bool from_right) {
  std::vector<marked_text> parts;
  const std::string_view all = text.text();
  if (from_right) {
    std::size_t end = all.size();
    while (most < 0 || std::ssize(parts) < most) {
      const std::size_t found =
          end < separator.size() ? std::string_view::npos : all.substr(0, end).rfind(separator);
      if (found == std::string_view::npos) break;
      parts.push_back(part_of(text, found + separator.size(), end));
      end = found;
    }
    parts.push_back(part_of(text, 0, end));
    std::ranges::reverse(parts);
    return parts;
  }
  std::size_t at = 0;
  while (most < 0 || std::ssize(parts) < most) {
    const std::size_t found = all.find(separator, at);
    if (found == std::string_view::npos) break;
    parts.push_back(part_of(text, at, found));
    at = found + separator.size();
  }
  parts.push_back(part_of(text, at, all.size()));
  return parts;
}

std::vector<marked_text> split_at_white_space(const marked_text& text, std::int64_t most) {
  std::vector<marked_text> parts;
  const std::string_view all = text.text();
  std::size_t at = skip_white_space(all, 0);
  while (at < all.size()) {
    if (most >= 0 && std::ssize(parts) == most) {
      parts.push_back(part_of(text, at, all.size()));
      break;
    }
    std::size_t end = at;
    for (std::size_t next = at; next < all.size();) {
      if (is_python_space(read_code_point(all, next))) break;
      end = next;
    }
    parts.push_back(part_of(text, at, end));
    at = skip_white_space(all, end);
  }
  return parts;
}

std::vector<marked_text> split_lines(const marked_text& text, bool keep_ends) {
  std::vector<marked_text> lines;
  const std::string_view all = text.text();
  std::size_t begin = 0;
  std::size_t at = 0;
  while (at < all.size()) {
    const std::size_t end = at;
    const char32_t c = read_code_point(all, at);
    if (!is_line_end(c)) continue;
    if (c == '\r' && at < all.size() && all[at] == '\n') ++at;
    lines.push_back(part_of(text, begin, keep_ends ? at : end));
    begin = at;
  }
  if (begin < all.size()) lines.push_back(part_of(text, begin, all.size()));
  return lines;
}

marked_text replace(const marked_text& text, std::string_view old, const marked_text& replacement,
                    std::int64_t most, budget& work) {
  const std::string_view all = text.text();
  marked_text result;
  std::size_t at = 0;
  const auto copy_to = [&](std::size_t end) {
    append(result, part_of(text, at, end));
    at = end;
  };
  for (std::size_t from = 0; most != 0; --most) {
    const std::size_t found = all.find(old, from);
    if (found == std::string_view::npos) break;
    copy_to(found);
    work.spend_text(replacement.text().size());
    work.check_text(result.text().size() + replacement.text().size());
    append(result, replacement);
    at = found + old.size();
    from = at;
    if (!old.empty()) continue;
    // Nothing stands before every character and at the end.
    if (found == all.size()) break;
    static_cast<void>(read_code_point(all, from));
  }
  copy_to(all.size());
  return result;
}

marked_text with_case(const marked_text& text, letter_case wanted) {
  marked_text result;
  case_mapper map(wanted);
  text.for_each_run({0, text.text().size()}, [&](std::string_view run, bool trusted) {
    std::string mapped;
    for (std::size_t at = 0; at < run.size();)
      append_code_point(mapped, map(read_code_point(run, at)));
    result.append(mapped, trusted);
  });
  return result;
}

}  // namespace octavo::model::jinja
