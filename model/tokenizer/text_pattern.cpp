// PCRE2 behind text_pattern. This is the only file that includes it.
#include "model/tokenizer/text_pattern.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <new>

#include "core/error.hpp"

namespace octavo::model {
namespace {

// A sound pattern needs a few steps a byte; the constant leaves room for lookahead.
constexpr std::size_t steps_per_byte = 16;
constexpr std::size_t steps_min = 1'000'000;
constexpr std::size_t steps_max = 1'000'000'000;
constexpr std::size_t jit_stack_bytes_min = 32 * 1024;
constexpr std::size_t jit_stack_bytes_max = 4 * 1024 * 1024;

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

template <auto Free>
struct freed_by {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};

using code_ptr = std::unique_ptr<pcre2_code, freed_by<pcre2_code_free>>;
using match_data_ptr = std::unique_ptr<pcre2_match_data, freed_by<pcre2_match_data_free>>;
using match_context_ptr = std::unique_ptr<pcre2_match_context, freed_by<pcre2_match_context_free>>;
using jit_stack_ptr = std::unique_ptr<pcre2_jit_stack, freed_by<pcre2_jit_stack_free>>;

template <class Pointer>
Pointer checked(Pointer pointer) {
  if (!pointer) throw std::bad_alloc();
  return pointer;
}

/// The escapes whose meaning differs, and what each is inside a class.
constexpr std::string_view white_space = R"(\p{Z}\x{09}-\x{0d}\x{85})";
constexpr std::string_view word = R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc})";

std::string outside_class(char escape) {
  switch (escape) {
    case 's':
      return "[" + std::string(white_space) + "]";
    case 'S':
      return "[^" + std::string(white_space) + "]";
    case 'w':
      return "[" + std::string(word) + "]";
    case 'W':
      return "[^" + std::string(word) + "]";
    default:
      return std::string{'\\', escape};
  }
}

std::string inside_class(char escape) {
  if (escape == 's') return std::string(white_space);
  if (escape == 'w') return std::string(word);
  return std::string{'\\', escape};
}

/// What searching needs besides the pattern. Pieces are many and short, so each
/// thread allocates it once; it fits every pattern.
class search_memory {
 public:
  search_memory()
      : data_(checked(match_data_ptr(pcre2_match_data_create(1, nullptr)))),
        context_(checked(match_context_ptr(pcre2_match_context_create(nullptr)))) {}

  void limit_steps(std::size_t text_bytes) {
    const std::size_t steps = std::min(steps_max, steps_min + steps_per_byte * text_bytes);
    pcre2_set_match_limit(context_.get(), static_cast<std::uint32_t>(steps));
  }

  /// The first match from `from` on; returns PCRE2's code.
  int run(const pcre2_code* code, std::string_view text, std::size_t from, text_range& match) {
    int result = attempt(code, text, from);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT && !stack_) {
      stack_ = checked(
          jit_stack_ptr(pcre2_jit_stack_create(jit_stack_bytes_min, jit_stack_bytes_max, nullptr)));
      pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
      result = attempt(code, text, from);
    }
    if (result >= 0) {
      const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(data_.get());
      match = {offsets[0], offsets[1]};
    }
    return result;
  }

 private:
  int attempt(const pcre2_code* code, std::string_view text, std::size_t from) {
    return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                       PCRE2_NO_UTF_CHECK, data_.get(), context_.get());
  }

  match_data_ptr data_;
  match_context_ptr context_;
  jit_stack_ptr stack_;
};

std::size_t next_character(std::string_view text, std::size_t at) {
  ++at;
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
  return at;
}

}  // namespace

struct text_pattern::compiled {
  code_ptr code;
};

std::string to_pcre2_dialect(std::string_view expression, const std::string& where) {
  const auto fail = [&](const std::string& what) {
    throw input_error(where + ": pattern '" + std::string(expression) + "' uses " + what +
                      ", which is not supported");
  };
  std::string translated;
  bool in_class = false;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    if (c == '\\' && i + 1 < expression.size()) {
      const char escape = expression[++i];
      if (escape == 'h' || escape == 'H') fail("\\h");
      if (in_class && (escape == 'S' || escape == 'W')) fail("a negated class inside a class");
      translated += in_class ? inside_class(escape) : outside_class(escape);
      continue;
    }
    if (in_class && c == '[' && expression.substr(i, 2) != "[:") fail("a class inside a class");
    if (in_class && expression.substr(i, 2) == "&&") fail("an intersection of classes");
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    translated += c;
  }
  return translated;
}

text_pattern text_pattern::regex(std::string_view expression, const std::string& where) {
  const std::string translated = to_pcre2_dialect(expression, where);
  int error = 0;
  PCRE2_SIZE at = 0;
  code_ptr code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                              PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &at,
                              nullptr));
  if (!code) {
    throw input_error(where + ": pattern '" + std::string(expression) +
                      "' is malformed: " + message_of(error));
  }
  // Without JIT support the interpreter gives the same matches.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  text_pattern pattern;
  pattern.source_ = expression;
  pattern.regex_ = std::make_shared<compiled>(compiled{std::move(code)});
  return pattern;
}

text_pattern text_pattern::literal(std::string text, const std::string& where) {
  if (text.empty()) throw input_error(where + ": pattern is empty; text is needed");
  text_pattern pattern;
  pattern.source_ = std::move(text);
  return pattern;
}

void text_pattern::find_all(std::string_view text, std::vector<text_range>& found) const {
  found.clear();
  if (regex_) {
    find_regex(text, found);
  } else {
    find_literal(text, found);
  }
}

void text_pattern::find_regex(std::string_view text, std::vector<text_range>& found) const {
  static thread_local search_memory memory;
  memory.limit_steps(text.size());
  std::size_t from = 0;
  while (from <= text.size()) {
    text_range match;
    const int code = memory.run(regex_->code.get(), text, from, match);
    if (code == PCRE2_ERROR_NOMATCH) return;
    if (code < 0) {
      throw input_error("pattern '" + source_ + "' cannot be matched against a text of " +
                        std::to_string(text.size()) + " bytes: " + message_of(code));
    }
    const bool empty = match.end <= match.begin;
    if (!empty) found.push_back(match);
    from = empty ? next_character(text, match.begin) : match.end;
  }
}

void text_pattern::find_literal(std::string_view text, std::vector<text_range>& found) const {
  for (std::size_t at = text.find(source_); at != std::string_view::npos;
       at = text.find(source_, at + source_.size())) {
    found.push_back({at, at + source_.size()});
  }
}

}  // namespace octavo::model
