// The escapes of string literals.
#pragma once

#include <string>
#include <string_view>

namespace octavo::model::jinja {

/// The text that the inside of a literal stands for, with Python's escapes. Throws
/// input_error naming `line` for an escape that is cut short or is no character.
[[nodiscard]] std::string unescape(std::string_view literal, int line);

}  // namespace octavo::model::jinja
