// str.format and the operator %: the plain forms that templates use.
#pragma once

#include "model/chat/jinja/arguments.hpp"

namespace octavo::model::jinja {

/// "{} {0} {name}".format(...), without attributes, conversions and format
/// specifications. Throws operation_error for those, and for arguments that lack.
[[nodiscard]] value format_method(const value& self, const arguments& given, budget& work);

/// "%s %d" % content, with a tuple for several. Throws operation_error for flags,
/// widths and other conversions, and where the numbers of arguments differ.
[[nodiscard]] value percent_format(const marked_text& form, const value& content, budget& work);

}  // namespace octavo::model::jinja
