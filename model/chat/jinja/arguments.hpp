// The arguments of a call of a filter, test, function or method, and how they are
// given to parameters.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/chat/jinja/value.hpp"

namespace octavo::model::jinja {

struct arguments {
  value_list positional;
  std::vector<std::pair<std::string, value>> named;
};

/// Arguments in the order of a list of parameters.
class bound_arguments {
 public:
  /// Throws operation_error, which names `callee`, for arguments that no parameter
  /// takes, or that one takes twice.
  bound_arguments(std::string_view callee, const arguments& given,
                  std::initializer_list<std::string_view> parameters);

  [[nodiscard]] bool has(std::size_t i) const { return places_[i].has_value(); }
  /// Throws operation_error where the argument was not given.
  [[nodiscard]] const value& at(std::size_t i) const;
  [[nodiscard]] value get_or(std::size_t i, value fallback) const;
  [[nodiscard]] bool flag_or(std::size_t i, bool fallback) const;
  [[nodiscard]] std::int64_t integer_or(std::size_t i, std::int64_t fallback) const;
  /// Throws operation_error where the argument is no text.
  [[nodiscard]] const marked_text& text(std::size_t i) const;
  /// Nothing where the argument was not given or is none.
  [[nodiscard]] std::optional<std::string> text_if_any(std::size_t i) const;

 private:
  [[nodiscard]] std::string name_of(std::size_t i) const;

  std::string callee_;
  std::vector<std::string_view> parameters_;
  std::vector<std::optional<value>> places_;
};

}  // namespace octavo::model::jinja
