// Small text helpers of the teaching output: times with fitting units, lists of
// request numbers, lines broken at words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"

namespace octavo::sim::teach {

/// A duration or moment with three to four digits and its unit: "850 us",
/// "12.3 ms", "4.207 s".
[[nodiscard]] std::string readable(micros time);

/// "0, 1 and 4"; of more than `most`, the first and how many more.
[[nodiscard]] std::string list_of(const std::vector<std::uint64_t>& ids, std::size_t most = 12);

/// `text` in lines of at most `columns`, broken at spaces; the second and later
/// lines start with `indent` spaces. Ends without a line break.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent);

/// Columns that UTF-8 text takes on the screen, at one a character.
[[nodiscard]] std::size_t display_columns(std::string_view text);

/// `text` with what a terminal might obey, or (where not `utf8`) cannot show,
/// as '?'.
[[nodiscard]] std::string printable(std::string_view text, bool utf8);

/// "1 step", "3 steps".
[[nodiscard]] std::string counted(std::int64_t count, std::string_view noun);

/// A share as "12 %", or "under 1 %" where rounding would hide it.
[[nodiscard]] std::string percent(double part, double whole);

}  // namespace octavo::sim::teach
