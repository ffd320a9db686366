// How long files and functions are, and how long they may be.
#include <algorithm>
#include <regex>

#include "tests/tidy/rules.hpp"

namespace octavo::tidy {
namespace {

constexpr int file_lines_max = 600;
constexpr int function_lines_max = 70;
constexpr int kernel_lines_max = 120;

enum class block { function, container, other };

/// `head` without what is inside parentheses and template parameter lists.
std::string flattened(std::string_view head) {
  std::string flat;
  int parentheses = 0;
  int angles = 0;
  for (const char c : head) {
    if (c == ')' && parentheses > 0) --parentheses;
    if (c == '<' && flat.ends_with("template "))
      angles = 1;
    else if (c == '<' && angles > 0)
      ++angles;
    if (parentheses == 0 && angles == 0) flat += c;
    if (c == '>' && angles > 0) --angles;
    if (c == '(') ++parentheses;
  }
  return flat;
}

/// What the text between the last ; { or } and a { says about the block.
block kind_of(std::string_view head) {
  static const std::regex container(R"(\b(namespace|class|struct|union|enum)\b)");
  const auto flat = flattened(head);
  if (std::regex_search(flat, container)) return block::container;
  const bool is_operator = flat.find("operator") != std::string::npos;
  if (flat.find(" = ") != std::string::npos && !is_operator) return block::other;
  if (flat.find("()") != std::string::npos || is_operator) return block::function;
  return flat.find("extern") != std::string::npos ? block::container : block::other;
}

std::string name_in(std::string_view head) {
  static const std::regex name(R"(([A-Za-z_~][A-Za-z0-9_:~]*)\s*\()");
  const auto flat = flattened(head);
  std::smatch match;
  return std::regex_search(flat, match, name) ? match[1].str() : "operator";
}

/// Walks the braces of a file's code.
class function_finder {
 public:
  explicit function_finder(const std::string& code) : code_(code) {}

  std::vector<function_extent> run() {
    for (at_ = 0; at_ < code_.size(); ++at_) step(code_[at_]);
    return std::move(found_);
  }

 private:
  struct scope {
    block kind = block::other;
    bool keeps_head = false;
    int parentheses = 0;
    std::size_t begin = 0;
    std::string name;
  };

  void step(char c) {
    if (c == '(') ++parentheses_;
    if (c == ')') --parentheses_;
    if (c == '{') open();
    if (c == '}') close();
    if (c == ';' && parentheses_ == 0) head_ = at_ + 1;
    if (c == ':' && is_access_label()) head_ = at_ + 1;
  }

  std::string_view head() const { return std::string_view(code_).substr(head_, at_ - head_); }

  bool is_access_label() const {
    static const std::regex label(R"(\s*(public|private|protected)\s*)");
    return std::regex_match(head().begin(), head().end(), label);
  }

  bool inside_function() const {
    return std::any_of(scopes_.begin(), scopes_.end(),
                       [](const scope& s) { return s.kind == block::function; });
  }

  /// An initializer: {} within parentheses, or right behind a name or bracket.
  bool is_initializer() const {
    return parentheses_ > 0 || (at_ > 0 && code_[at_ - 1] != ' ' && code_[at_ - 1] != '\n');
  }

  void open() {
    scope opened;
    opened.parentheses = parentheses_;
    opened.keeps_head = is_initializer();
    if (!opened.keeps_head && !inside_function()) {
      opened.kind = kind_of(head());
      const auto first = code_.find_first_not_of(" \n", head_);
      opened.begin = std::min(first, at_);
      if (opened.kind == block::function) opened.name = name_in(head());
    }
    scopes_.push_back(opened);
    parentheses_ = 0;
    if (!opened.keeps_head) head_ = at_ + 1;
  }

  void close() {
    if (scopes_.empty()) return;
    const scope closed = scopes_.back();
    scopes_.pop_back();
    parentheses_ = closed.parentheses;
    if (!closed.keeps_head) head_ = at_ + 1;
    if (closed.kind != block::function) return;
    const int first = line_at(code_, closed.begin);
    found_.push_back({closed.name, first, line_at(code_, at_) - first + 1});
  }

  const std::string& code_;
  std::size_t at_ = 0;
  std::size_t head_ = 0;
  int parentheses_ = 0;
  std::vector<scope> scopes_;
  std::vector<function_extent> found_;
};

/// Compares one length with its limit, and the exception made for it.
void judge(const source_file& file, const function_extent& what, int limit,
           const std::vector<exception>& exceptions, std::vector<violation>& found) {
  const std::string subject = what.name.empty() ? "the file" : what.name;
  const auto listed = std::find_if(exceptions.begin(), exceptions.end(), [&](const exception& e) {
    return e.path == file.path && e.function == what.name;
  });
  const auto length = std::to_string(what.length) + " lines";
  if (listed == exceptions.end()) {
    if (what.length <= limit) return;
    found.push_back({file.path, what.line,
                     subject + " has " + length + "; allowed are " + std::to_string(limit)});
  } else if (what.length > listed->lines) {
    found.push_back(
        {file.path, what.line,
         subject + " has " + length + "; it is excepted up to " + std::to_string(listed->lines)});
  } else if (what.length < listed->lines) {
    found.push_back({file.path, what.line,
                     subject + " has shrunk to " + length + ": lower or remove its exception"});
  }
}

}  // namespace

std::vector<function_extent> functions_of(const source_file& file) {
  return function_finder(file.code).run();
}

std::vector<violation> check_lengths(const source_file& file,
                                     const std::vector<exception>& exceptions) {
  std::vector<violation> found;
  if (!is_written(file.path)) return found;
  const auto lines = static_cast<int>(lines_of(file.text).size());
  judge(file, {"", 1, lines}, file_lines_max, exceptions, found);
  const bool kernels = file.path.find("kernels/") != std::string::npos;
  const auto functions = functions_of(file);
  for (const auto& function : functions) {
    judge(file, function, kernels ? kernel_lines_max : function_lines_max, exceptions, found);
  }
  for (const auto& listed : exceptions) {
    const bool named = listed.function.empty() ||
                       std::any_of(functions.begin(), functions.end(), [&](const auto& function) {
                         return function.name == listed.function;
                       });
    if (listed.path == file.path && !named) {
      found.push_back({file.path, 1, listed.function + " is gone: remove its exception"});
    }
  }
  return found;
}

}  // namespace octavo::tidy
