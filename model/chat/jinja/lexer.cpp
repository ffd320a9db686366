// See lexer.hpp. What is text and what is stripped follows Jinja 3's lexer.
#include "model/chat/jinja/lexer.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "model/chat/jinja/characters.hpp"
#include "model/chat/jinja/string_literal.hpp"
#include "model/tokenizer/utf8.hpp"

namespace octavo::model::jinja {
namespace {

// Longest first where one begins with another.
constexpr std::array<std::string_view, 26> symbols{
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};

/// One kind of line end, and none at the very end.
std::string with_plain_lines(std::string_view source) {
  std::string plain;
  plain.reserve(source.size());
  for (std::size_t at = 0; at < source.size(); ++at) {
    if (source[at] == '\r') {
      plain += '\n';
      if (at + 1 < source.size() && source[at + 1] == '\n') ++at;
    } else {
      plain += source[at];
    }
  }
  if (plain.ends_with('\n')) plain.pop_back();
  return plain;
}

bool is_name_character(char c) {
  return is_ascii_letter(c) || is_ascii_digit(c) || c == '_';
}

class lexer {
 public:
  explicit lexer(std::string source) : source_(std::move(source)), text_(source_) {}

  std::vector<token> run() {
    while (at_ < text_.size()) outside();
    add(token_type::end, {});
    return std::move(tokens_);
  }

 private:
  void add(token_type type, std::string content) {
    tokens_.push_back({type, std::move(content), line_});
  }

  /// Moves on to `to`, counting lines.
  void move_to(std::size_t to) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    at_ = to;
  }
  void skip_space() { move_to(skip_white_space(text_, at_)); }
  [[nodiscard]] bool sees(std::string_view what) const {
    return text_.substr(at_).starts_with(what);
  }

  /// Text up to the next tag, and the tag's beginning.
  void outside() {
    std::size_t tag = text_.find('{', at_);
    while (tag != std::string_view::npos && tag + 1 < text_.size() &&
           std::string_view("{%#").find(text_[tag + 1]) == std::string_view::npos) {
      tag = text_.find('{', tag + 1);
    }
    if (tag == std::string_view::npos || tag + 1 >= text_.size()) {
      add(token_type::text, std::string(text_.substr(at_)));
      move_to(text_.size());
      return;
    }
    const char kind = text_[tag + 1];
    const char sign = tag + 2 < text_.size() ? text_[tag + 2] : ' ';
    add_text(text_.substr(at_, tag - at_), sign, kind != '{');
    move_to(tag + (sign == '-' || sign == '+' ? 3 : 2));
    if (kind == '#') {
      comment();
    } else if (kind == '{') {
      tag_body(token_type::print_begin, token_type::print_end, "}}");
    } else if (!raw_block()) {
      tag_body(token_type::block_begin, token_type::block_end, "%}");
    }
  }

  /// The text before a tag, without the white space that the tag takes away.
  void add_text(std::string_view text, char sign, bool strips_line) {
    if (sign == '-') {
      text = without_white_space_behind(text);
    } else if (sign != '+' && strips_line) {
      const std::size_t newline = text.rfind('\n');
      const std::size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
      const bool blank = skip_white_space(text, line_begin) == text.size();
      if (blank && (line_begin > 0 || at_line_begin_)) text = text.substr(0, line_begin);
    }
    if (!text.empty()) add(token_type::text, std::string(text));
  }

  /// Behind a tag: `sign` is the character before its end, `trims` says whether one
  /// line end goes with it.
  void close(char sign, std::size_t end_bytes, bool trims) {
    const std::size_t begin = at_;
    move_to(at_ + end_bytes);
    if (sign == '-') {
      skip_space();
    } else if (sign != '+' && trims && sees("\n")) {
      move_to(at_ + 1);
    }
    at_line_begin_ = at_ > begin && text_[at_ - 1] == '\n';
  }

  void comment() {
    const int begin = line_;
    const std::size_t end = text_.find("#}", at_);
    if (end == std::string_view::npos) fail_at(begin, "a comment {# has no end #}");
    const char sign = end > at_ ? text_[end - 1] : ' ';
    move_to(end);
    close(sign, 2, true);
  }

  /// {% raw %} ... {% endraw %}; false where something else begins here.
  bool raw_block() {
    const auto behind = keyword_tag(at_, "raw");
    if (!behind) return false;
    const int begin = line_;
    const char sign = text_[*behind - 1];
    move_to(*behind);
    close(sign, 2, false);
    for (std::size_t tag = text_.find("{%", at_); tag != std::string_view::npos;
         tag = text_.find("{%", tag + 2)) {
      std::size_t name = tag + 2;
      const char before = name < text_.size() ? text_[name] : ' ';
      if (before == '-' || before == '+') ++name;
      const auto end = keyword_tag(name, "endraw");
      if (!end) continue;
      add_text(text_.substr(at_, tag - at_), before, true);
      const char after = text_[*end - 1];
      move_to(*end);
      close(after, 2, true);
      return true;
    }
    fail_at(begin, "{% raw %} has no {% endraw %}");
  }

  /// Where "%}" stands if only `word` lies between `from` and it.
  [[nodiscard]] std::optional<std::size_t> keyword_tag(std::size_t from,
                                                       std::string_view word) const {
    std::size_t at = skip_white_space(text_, from);
    if (!text_.substr(at).starts_with(word)) return std::nullopt;
    at = skip_white_space(text_, at + word.size());
    if (at < text_.size() && (text_[at] == '-' || text_[at] == '+')) ++at;
    if (!text_.substr(at).starts_with("%}")) return std::nullopt;
    return at;
  }

  void tag_body(token_type begin, token_type end, std::string_view closing) {
    add(begin, {});
    const int begin_line = line_;
    std::string brackets;
    for (;;) {
      skip_space();
      if (at_ >= text_.size()) fail_at(begin_line, "a tag has no end " + std::string(closing));
      if (brackets.empty()) {
        const bool signed_end =
            (text_[at_] == '-' || (text_[at_] == '+' && end == token_type::block_end)) &&
            text_.substr(at_ + 1).starts_with(closing);
        if (signed_end || sees(closing)) {
          const char sign = signed_end ? text_[at_] : ' ';
          if (signed_end) ++at_;
          add(end, {});
          close(sign, 2, end == token_type::block_end);
          return;
        }
      }
      inside(brackets);
    }
  }

  /// One token of an expression.
  void inside(std::string& brackets) {
    const char c = text_[at_];
    if (c == '"' || c == '\'') {
      string(c);
    } else if (is_ascii_digit(c)) {
      number();
    } else if (is_name_character(c)) {
      std::size_t to = at_;
      while (to < text_.size() && is_name_character(text_[to])) ++to;
      add(token_type::name, std::string(text_.substr(at_, to - at_)));
      at_ = to;
    } else {
      symbol(brackets);
    }
  }

  void string(char quote) {
    std::size_t to = at_ + 1;
    while (to < text_.size() && text_[to] != quote) to += text_[to] == '\\' ? 2 : 1;
    if (to >= text_.size()) fail_at(line_, "a string has no closing quote");
    add(token_type::string, unescape(text_.substr(at_ + 1, to - at_ - 1), line_));
    move_to(to + 1);
  }

  void number() {
    std::size_t to = at_;
    const auto digits = [&] {
      while (to < text_.size() && (is_ascii_digit(text_[to]) || text_[to] == '_')) ++to;
    };
    const auto digit_at = [&](std::size_t at) {
      return at < text_.size() && is_ascii_digit(text_[at]);
    };
    token_type type = token_type::integer;
    digits();
    // Behind a dot a number is an index: x.0.1 has no fraction.
    const bool is_index =
        !tokens_.empty() && tokens_.back().text == "." && at_ > 0 && text_[at_ - 1] == '.';
    if (!is_index && to < text_.size() && text_[to] == '.' && digit_at(to + 1)) {
      type = token_type::floating;
      ++to;
      digits();
    }
    if (to < text_.size() && (text_[to] == 'e' || text_[to] == 'E')) {
      const bool has_sign = to + 1 < text_.size() && (text_[to + 1] == '+' || text_[to + 1] == '-');
      if (digit_at(to + (has_sign ? 2 : 1))) {
        type = token_type::floating;
        to += has_sign ? 2 : 1;
        digits();
      }
    }
    std::string plain(text_.substr(at_, to - at_));
    std::erase(plain, '_');
    add(type, std::move(plain));
    at_ = to;
  }

  void symbol(std::string& brackets) {
    const auto found = std::ranges::find_if(symbols, [&](std::string_view s) { return sees(s); });
    if (found == symbols.end()) {
      std::size_t to = at_;
      static_cast<void>(read_code_point(text_, to));
      fail_at(line_, "unexpected character '" + std::string(text_.substr(at_, to - at_)) + "'");
    }
    const char c = found->front();
    if (c == '(') brackets += ')';
    if (c == '[') brackets += ']';
    if (c == '{') brackets += '}';
    if (c == ')' || c == ']' || c == '}') {
      if (brackets.empty() || brackets.back() != c) {
        fail_at(line_,
                std::string("unexpected '") + c + "'" +
                    (brackets.empty() ? "" : std::string(", expected '") + brackets.back() + "'"));
      }
      brackets.pop_back();
    }
    add(token_type::symbol, std::string(*found));
    at_ += found->size();
  }

  std::string source_;
  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool at_line_begin_ = true;
  std::vector<token> tokens_;
};

}  // namespace

std::vector<token> tokenize(std::string_view source, const limits& allowed) {
  if (source.size() > allowed.template_bytes) {
    throw input_error("chat template: has " + std::to_string(source.size()) + " bytes; up to " +
                      std::to_string(allowed.template_bytes) + " are allowed");
  }
  if (const auto at = first_invalid_utf8(source)) {
    throw input_error("chat template: is not valid UTF-8 at byte " + std::to_string(*at));
  }
  return lexer(with_plain_lines(source)).run();
}

std::string describe(const token& token) {
  switch (token.type) {
    case token_type::text:
      return "text";
    case token_type::print_begin:
      return "{{";
    case token_type::print_end:
      return "}}";
    case token_type::block_begin:
      return "{%";
    case token_type::block_end:
      return "%}";
    case token_type::string:
      return "a string";
    case token_type::end:
      return "the end of the template";
    default:
      return "'" + token.text + "'";
  }
}

}  // namespace octavo::model::jinja
