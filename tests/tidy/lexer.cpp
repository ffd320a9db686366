// Tells code from comments, literals and preprocessor lines, which is as much
// of C++ as the tidy rules need.
#include <cctype>

#include "tests/tidy/source.hpp"

namespace octavo::tidy {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

class lexer {
 public:
  explicit lexer(source_file& file) : file_(file), text_(file.text) {
    file_.code.reserve(text_.size());
  }

  void run() {
    while (at_ < text_.size()) {
      if (starts("//")) {
        blank_until("\n", 0);
      } else if (starts("/*")) {
        blank_until("*/", 2);
      } else if (text_[at_] == '#' && only_space_before()) {
        directive();
      } else if (text_[at_] == '"') {
        is_raw() ? raw_string() : literal('"');
      } else if (text_[at_] == '\'' && !is_digit_separator()) {
        literal('\'');
      } else {
        file_.code += text_[at_++];
      }
    }
  }

 private:
  bool starts(std::string_view what) const { return text_.substr(at_).starts_with(what); }

  void blank_one() {
    const char c = text_[at_++];
    file_.code += c == '\n' ? '\n' : ' ';
  }

  /// Blanks up to `end`, and `past` characters of it.
  void blank_until(std::string_view end, std::size_t past) {
    const auto found = text_.find(end, at_ + 1);
    const auto stop = found == std::string_view::npos ? text_.size() : found + past;
    while (at_ < stop) blank_one();
  }

  bool only_space_before() const {
    for (auto i = at_; i > 0 && text_[i - 1] != '\n'; --i) {
      if (text_[i - 1] != ' ' && text_[i - 1] != '\t') return false;
    }
    return true;
  }

  /// A whole preprocessor line, with those it continues on.
  void directive() {
    const auto begin = at_;
    while (at_ < text_.size() && !(text_[at_] == '\n' && text_[at_ - 1] != '\\') && !starts("//") &&
           !starts("/*")) {
      blank_one();
    }
    note_include(begin, text_.substr(begin, at_ - begin));
  }

  void note_include(std::size_t begin, std::string_view line) {
    const auto word = line.find_first_not_of("# \t");
    if (word == std::string_view::npos || !line.substr(word).starts_with("include")) return;
    const auto open = line.find_first_of("\"<", word);
    if (open == std::string_view::npos) return;
    const auto close = line.find_first_of("\">", open + 1);
    file_.includes.push_back(
        {line_at(text_, begin), std::string(line.substr(open + 1, close - open - 1))});
  }

  bool is_raw() const {
    if (at_ == 0 || text_[at_ - 1] != 'R') return false;
    const auto before = text_.substr(0, at_ - 1);
    if (before.empty() || !is_word(before.back())) return true;
    for (const std::string_view prefix : {"u8", "u", "U", "L"}) {
      if (before.ends_with(prefix) &&
          (before.size() == prefix.size() || !is_word(before[before.size() - prefix.size() - 1]))) {
        return true;
      }
    }
    return false;
  }

  void raw_string() {
    const auto open = std::min(text_.find('(', at_), text_.size());
    std::string end(1, ')');
    end.append(text_.substr(at_ + 1, open - at_ - 1)).append(1, '"');
    blank_until(end, end.size());
  }

  /// A string or a character: keeps the quotes, blanks what is between.
  void literal(char quote) {
    file_.code += text_[at_++];
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) blank_one();
      blank_one();
    }
    if (at_ < text_.size() && text_[at_] == quote) file_.code += text_[at_++];
  }

  /// True inside a number such as 1'000.
  bool is_digit_separator() const {
    auto begin = at_;
    while (begin > 0 && (is_word(text_[begin - 1]) || text_[begin - 1] == '\'')) --begin;
    return begin < at_ && std::isdigit(static_cast<unsigned char>(text_[begin])) != 0;
  }

  source_file& file_;
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

source_file make_source(std::string path, std::string text) {
  source_file file{std::move(path), std::move(text), {}, {}};
  if (is_cpp(file.path)) lexer(file).run();
  return file;
}

}  // namespace octavo::tidy
