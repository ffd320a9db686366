// Values as text: as Python prints them, and as JSON.
#pragma once

#include <optional>
#include <string>

#include "model/chat/jinja/value.hpp"

namespace octavo::model::jinja {

/// str(v): what {{ v }} writes. Texts keep their marks; numbers, true, false and none
/// are trusted; lists and dicts are not. Throws operation_error for what has no text
/// (macros, namespaces).
[[nodiscard]] marked_text to_text(const value& v, budget& work);

/// Python's shortest form that reads back as the same number.
[[nodiscard]] std::string float_text(double number);

struct json_style {
  bool ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

/// json.dumps(v), never trusted. Throws operation_error for what JSON has not.
[[nodiscard]] marked_text to_json(const value& v, const json_style& style, budget& work);

}  // namespace octavo::model::jinja
