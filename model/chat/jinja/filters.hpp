// The filters behind `|`.
#pragma once

#include <string_view>

#include "model/chat/jinja/arguments.hpp"

namespace octavo::model::jinja {

/// What a filter makes of a value. Throws operation_error for a filter that is not
/// known, and for values and arguments that cannot be used.
[[nodiscard]] value filtered(std::string_view filter, const value& input, const arguments& given,
                             budget& work);

}  // namespace octavo::model::jinja
