// The methods of texts, lists and dicts, as Python's. Those that would change their
// value are refused when called, as by transformers.
#pragma once

#include <string_view>

#include "model/chat/jinja/arguments.hpp"

namespace octavo::model::jinja {

struct builtin_method {
  std::string_view name;
  /// Throws operation_error for arguments that cannot be used.
  value (*run)(const value& self, const arguments& given, budget& work);
};

/// nullptr where values of this type have no such method.
[[nodiscard]] const builtin_method* find_method(const value& self, std::string_view name);

}  // namespace octavo::model::jinja
