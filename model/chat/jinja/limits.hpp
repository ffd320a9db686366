// How much a template may ask for. Templates come with models, so from strangers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace octavo::model::jinja {

struct limits {
  std::size_t template_bytes = 1'000'000;
  /// Nesting of statements and expressions in the text of a template.
  int nesting = 150;
  /// Nesting while it runs, calls of macros included: what bounds the stack.
  int depth = 800;
  /// Nesting of lists and dicts.
  int value_depth = 100;
  /// Steps of evaluation. One is an expression or statement, an element of a list,
  /// or 16 bytes of text made, so that steps bound the memory too.
  std::int64_t steps = 20'000'000;
  std::size_t text_bytes = std::size_t{64} << 20;
  std::int64_t range_length = 100'000;
};

/// Ends a rendering with a message that names the line.
[[noreturn]] inline void fail_at(int line, const std::string& why) {
  throw input_error("chat template, line " + std::to_string(line) + ": " + why);
}

/// A failure deep inside an operation, which does not know its line. Whoever runs
/// the operation adds it.
struct operation_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Counts down what one rendering may still do.
class budget {
 public:
  explicit budget(const limits& allowed) : allowed_(allowed) {}

  void spend(std::int64_t steps) {
    spent_ += steps;
    if (spent_ > allowed_.steps) {
      throw operation_error("the template takes more than " + std::to_string(allowed_.steps) +
                            " steps, the most that is allowed");
    }
  }
  /// Before `count` elements are put into a list.
  void spend_elements(std::size_t count) { spend(static_cast<std::int64_t>(count)); }
  /// Whether a text may have `bytes`.
  void check_text(std::size_t bytes) const {
    if (bytes > allowed_.text_bytes) {
      throw operation_error("a text would have " + std::to_string(bytes) + " bytes; up to " +
                            std::to_string(allowed_.text_bytes) + " are allowed");
    }
  }
  /// Before a text of `bytes` is made.
  void spend_text(std::size_t bytes) {
    check_text(bytes);
    spend(1 + static_cast<std::int64_t>(bytes / 16));
  }
  [[nodiscard]] const limits& allowed() const { return allowed_; }

  /// One more level of evaluation, for as long as it lives.
  class level {
   public:
    explicit level(budget& work) : depth_(work.depth_) {
      if (depth_ >= work.allowed_.depth) {
        throw operation_error("expressions, blocks and macros are more than " +
                              std::to_string(work.allowed_.depth) + " levels deep in each other");
      }
      ++depth_;
    }
    level(const level&) = delete;
    level& operator=(const level&) = delete;
    ~level() { --depth_; }

   private:
    int& depth_;
  };

 private:
  limits allowed_;
  std::int64_t spent_ = 0;
  int depth_ = 0;
};

}  // namespace octavo::model::jinja
