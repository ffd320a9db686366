// Azure's LLM inference traces: TIMESTAMP (UTC, down to 100 ns), ContextTokens,
// GeneratedTokens. A request arrives as long after the trace's start as its
// timestamp lies after the first row's.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>

#include "traces/formats/formats.hpp"
#include "traces/formats/trace_builder.hpp"

namespace octavo::traces {
namespace {

constexpr std::string_view timestamp_expected = "a UTC time like 2023-11-16 18:17:03.9799600";

/// Reads a timestamp from left to right; `ok` falls once something else stands there.
class timestamp_cursor {
 public:
  explicit timestamp_cursor(std::string_view text) : text_(text) {}

  /// Exactly `digits` digits.
  std::int64_t number(std::size_t digits) {
    const auto part = text_.substr(0, digits);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    ok_ = ok_ && part.size() == digits && part.front() != '-' && error == std::errc{} &&
          end == part.data() + digits;
    text_.remove_prefix(part.size());
    return value;
  }
  bool take(std::string_view any_of) {
    if (text_.empty() || any_of.find(text_.front()) == std::string_view::npos) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(std::string_view any_of) { ok_ = take(any_of) && ok_; }
  /// Digits behind the point, in nanoseconds.
  std::int64_t nanoseconds() {
    std::int64_t value = 0;
    std::int64_t unit = 100'000'000;
    for (; !text_.empty() && text_.front() >= '0' && text_.front() <= '9'; unit /= 10) {
      value += (text_.front() - '0') * unit;
      text_.remove_prefix(1);
    }
    return value;
  }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool at_end() const { return text_.empty(); }

 private:
  std::string_view text_;
  bool ok_ = true;
};

/// Nanoseconds since 1970; none where `text` is no timestamp.
std::optional<std::int64_t> nanoseconds_of(std::string_view text) {
  timestamp_cursor cursor(text);
  const auto year = cursor.number(4);
  cursor.expect("-");
  const auto month = cursor.number(2);
  cursor.expect("-");
  const auto day = cursor.number(2);
  cursor.expect(" T");
  const auto hour = cursor.number(2);
  cursor.expect(":");
  const auto minute = cursor.number(2);
  cursor.expect(":");
  const auto second = cursor.number(2);
  const auto fraction = cursor.take(".") ? cursor.nanoseconds() : 0;
  std::int64_t offset_minutes = 0;
  const bool east = cursor.ok() && cursor.take("+");
  if (east || cursor.take("-")) {
    offset_minutes = cursor.number(2) * 60;
    cursor.expect(":");
    offset_minutes = (offset_minutes + cursor.number(2)) * (east ? 1 : -1);
  } else {
    cursor.take("Z");
  }
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(year)),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  // Nanoseconds in 64 bits reach from 1678 to 2261.
  const bool in_range =
      year >= 1700 && year <= 2200 && date.ok() && hour < 24 && minute < 60 && second <= 60;
  if (!cursor.ok() || !cursor.at_end() || !in_range) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  const auto seconds = ((days * 24 + hour) * 60 + minute - offset_minutes) * 60 + second;
  return seconds * 1'000'000'000 + fraction;
}

}  // namespace

bool is_azure(const csv_table& table) {
  return table.find({"timestamp"}) && table.find({"contexttokens"}) &&
         table.find({"generatedtokens"});
}

trace read_azure(text_source& source, csv_table& table) {
  const auto timestamp = *table.find({"timestamp"});
  const auto prompt = *table.find({"contexttokens"});
  const auto output = *table.find({"generatedtokens"});
  trace_builder builder(source.at().file, "azure-csv");
  std::optional<std::int64_t> first_ns;
  micros earliest{0};
  while (table.next()) {
    const place at = source.at();
    const auto now_ns = nanoseconds_of(table.cell(timestamp));
    if (!now_ns) fail(at, "TIMESTAMP", table.cell(timestamp), timestamp_expected);
    if (!first_ns) first_ns = now_ns;
    const std::int64_t since_ns = *now_ns - *first_ns;
    if (std::abs(static_cast<double>(since_ns)) > time_us_max * 1e3) {
      fail(at, "TIMESTAMP", table.cell(timestamp), "a time within 31 years of the first row's");
    }
    request r;
    r.arrival = micros{(since_ns + (since_ns < 0 ? -500 : 500)) / 1000};
    r.prompt_tokens = parse_tokens(at, "ContextTokens", table.cell(prompt));
    r.output_tokens = parse_tokens(at, "GeneratedTokens", table.cell(output));
    earliest = std::min(earliest, r.arrival);
    builder.add(r, at);
  }
  builder.shift_arrivals(micros{0} - earliest);
  return std::move(builder).finish();
}

}  // namespace octavo::traces
