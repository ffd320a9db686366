// Field parsing and its error messages; see field.hpp.
#include "traces/formats/field.hpp"

#include <charconv>
#include <cmath>
#include <optional>

namespace octavo::traces {
namespace {

constexpr std::size_t quoted_chars_max = 60;

std::string prefix_of(const place& at) {
  std::string text(at.file);
  if (at.line != 0) text += ", line " + std::to_string(at.line);
  return text;
}

template <class Number>
std::optional<Number> whole_number_from(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string range(std::int64_t min, std::int64_t max) {
  return "an integer from " + std::to_string(min) + " to " + std::to_string(max);
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const auto begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::string quoted(std::string_view text) {
  const bool cut = text.size() > quoted_chars_max;
  std::string result(text.substr(0, quoted_chars_max));
  for (char& c : result) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) c = '?';
  }
  return cut ? result + "..." : result;
}

void fail(const place& at, std::string_view sentence) {
  throw input_error(prefix_of(at) + ": " + std::string(sentence));
}

void fail(const place& at, std::string_view field, std::string_view found,
          std::string_view expected) {
  std::string text = prefix_of(at);
  if (!field.empty()) text += ", field \"" + quoted(field) + '"';
  text += ": found " + (found.empty() ? std::string("nothing") : quoted(found));
  text += "; expected " + std::string(expected);
  throw input_error(text);
}

std::int64_t parse_integer(const place& at, std::string_view field, std::string_view text,
                           std::int64_t min, std::int64_t max) {
  const auto number = trimmed(text);
  auto value = whole_number_from<std::int64_t>(number);
  if (!value) {
    const auto real = whole_number_from<double>(number);
    // Comparisons written so that NaN fails them; beyond 2^53 a double is no integer to trust.
    if (real && std::abs(*real) <= 9007199254740992.0 && std::trunc(*real) == *real) {
      value = static_cast<std::int64_t>(*real);
    }
  }
  if (!value || *value < min || *value > max) fail(at, field, number, range(min, max));
  return *value;
}

token_count parse_tokens(const place& at, std::string_view field, std::string_view text,
                         std::int64_t min) {
  return token_count{static_cast<std::int32_t>(parse_integer(at, field, text, min, tokens_max))};
}

micros parse_time(const place& at, std::string_view field, std::string_view text, double unit_us) {
  const auto number = trimmed(text);
  const auto value = whole_number_from<double>(number);
  if (!value || !(*value >= 0) || !(*value * unit_us <= time_us_max)) {
    fail(at, field, number,
         "a number from 0 to " + std::to_string(static_cast<std::int64_t>(time_us_max / unit_us)));
  }
  return micros{std::llround(*value * unit_us)};
}

}  // namespace octavo::traces
