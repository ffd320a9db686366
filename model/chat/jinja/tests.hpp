// The tests behind `is`.
#pragma once

#include <string_view>

#include "model/chat/jinja/arguments.hpp"

namespace octavo::model::jinja {

/// Whether a value passes the test. Throws operation_error for a test that is not
/// known, and for arguments that cannot be used.
[[nodiscard]] bool passes(std::string_view test, const value& v, const arguments& given,
                          budget& work);

}  // namespace octavo::model::jinja
