// Arithmetic and putting together, as Python does it. All throw operation_error for
// operands that do not fit, division by zero, and results that are too large.
#pragma once

#include "model/chat/jinja/ast.hpp"

namespace octavo::model::jinja {

/// All operators but `and` and `or`.
[[nodiscard]] value apply(binary_operator op, const value& left, const value& right, budget& work);
[[nodiscard]] value apply(unary_operator op, const value& operand);
[[nodiscard]] bool apply(comparison_operator op, const value& left, const value& right,
                         budget& work);

}  // namespace octavo::model::jinja
