// Dates and times in words, for strftime_now.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace octavo::model::jinja {

/// strftime in the C locale. `now_s` is what clocks on the wall show, as seconds since
/// 1970-01-01 00:00. Throws operation_error for conversions that depend on a time
/// zone, or that are not known, and for years outside of 1 to 9999.
[[nodiscard]] std::string clock_text(std::string_view format, std::int64_t now_s);

}  // namespace octavo::model::jinja
