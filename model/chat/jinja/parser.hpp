// Builds the tree of a template from its tokens.
#pragma once

#include <string_view>

#include "model/chat/jinja/ast.hpp"

namespace octavo::model::jinja {

/// Parses a template of Jinja as chat templates use it: without inheritance, includes,
/// imports, {% call %} and {% do %}; with {% break %}, {% continue %} and
/// {% generation %}. Throws input_error naming the line.
[[nodiscard]] statements parse(std::string_view source, const limits& allowed = {});

}  // namespace octavo::model::jinja
