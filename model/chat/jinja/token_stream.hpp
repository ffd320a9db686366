// Tokens one after the other, and the complaints about them.
#pragma once

#include <utility>
#include <vector>

#include "model/chat/jinja/lexer.hpp"

namespace octavo::model::jinja {

class token_stream {
 public:
  token_stream(std::vector<token> tokens, const limits& allowed)
      : tokens_(std::move(tokens)), allowed_(allowed) {}

  [[nodiscard]] const token& now() const { return tokens_[at_]; }
  /// The token behind the present one.
  [[nodiscard]] const token& ahead() const {
    return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_];
  }
  /// The present token; moves on, but not beyond the end.
  const token& take() {
    const token& taken = tokens_[at_];
    if (taken.type != token_type::end) ++at_;
    return taken;
  }

  [[nodiscard]] bool sees(token_type type) const { return now().type == type; }
  [[nodiscard]] bool sees_symbol(std::string_view text) const {
    return now().type == token_type::symbol && now().text == text;
  }
  [[nodiscard]] bool sees_name(std::string_view text) const {
    return now().type == token_type::name && now().text == text;
  }
  bool take_symbol(std::string_view text) { return sees_symbol(text) && (take(), true); }
  bool take_name(std::string_view text) { return sees_name(text) && (take(), true); }

  void expect_symbol(std::string_view text) {
    if (!take_symbol(text)) unexpected("'" + std::string(text) + "'");
  }
  void expect_name(std::string_view text) {
    if (!take_name(text)) unexpected("'" + std::string(text) + "'");
  }
  void expect(token_type type) {
    if (!sees(type)) unexpected(describe({type, {}, 0}));
    take();
  }
  std::string expect_any_name() {
    if (!sees(token_type::name)) unexpected("a name");
    return take().text;
  }

  [[nodiscard]] int line() const { return now().line; }
  [[nodiscard]] const limits& allowed() const { return allowed_; }

  [[noreturn]] void unexpected(const std::string& wanted) const {
    fail_at(line(), "found " + describe(now()) + " where " + wanted + " is expected");
  }

  /// Counts how deep the parser is in itself, for as long as it lives.
  class level {
   public:
    explicit level(token_stream& stream) : stream_(stream) {
      if (++stream_.nesting_ > stream_.allowed_.nesting) {
        fail_at(stream_.line(),
                "nested deeper than " + std::to_string(stream_.allowed_.nesting) + " levels");
      }
    }
    level(const level&) = delete;
    level& operator=(const level&) = delete;
    ~level() { --stream_.nesting_; }

   private:
    token_stream& stream_;
  };

 private:
  std::vector<token> tokens_;
  std::size_t at_ = 0;
  limits allowed_;
  int nesting_ = 0;
};

}  // namespace octavo::model::jinja
