// Turns the text of one field into a value, or into an error that says where it
// stands, what was found and what is allowed. Every format reader uses these, so
// a bad number reads the same in CSV and in JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/units.hpp"

namespace octavo::traces {

/// Longest prompt or output a trace may hold: sums of a few stay inside 32 bits.
inline constexpr std::int32_t tokens_max = 500'000'000;
/// Latest moment a trace may hold (31 years). Below it, seconds read into a double and
/// rounded to microseconds give back the microsecond that was written.
inline constexpr double time_us_max = 1e15;

/// A place in a file, for messages. `line` counts from 1; 0 means the whole file.
struct place {
  std::string_view file;
  std::size_t line = 0;
};

/// Throws input_error: `FILE, line 3, field "input_length": found -5; expected …`.
/// An empty `field` or `found` is left out.
[[noreturn]] void fail(const place& at, std::string_view field, std::string_view found,
                       std::string_view expected);

/// Throws input_error with a free sentence: `FILE, line 3: …`.
[[noreturn]] void fail(const place& at, std::string_view sentence);

/// `text` without white space around it.
[[nodiscard]] std::string_view trimmed(std::string_view text);

/// Shortens `text` for a message and replaces what a terminal should not see.
[[nodiscard]] std::string quoted(std::string_view text);

/// An integer from `min` to `max`. `12.0` is taken too: table tools write counts that way.
[[nodiscard]] std::int64_t parse_integer(const place& at, std::string_view field,
                                         std::string_view text, std::int64_t min, std::int64_t max);

/// A number of tokens from `min` to `tokens_max`.
[[nodiscard]] token_count parse_tokens(const place& at, std::string_view field,
                                       std::string_view text, std::int64_t min = 1);

/// A time that is not negative, `unit_us` microseconds per unit, rounded to the nearest one.
[[nodiscard]] micros parse_time(const place& at, std::string_view field, std::string_view text,
                                double unit_us);

}  // namespace octavo::traces
