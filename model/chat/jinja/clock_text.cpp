// See clock_text.hpp.
#include "model/chat/jinja/clock_text.hpp"

#include <array>
#include <chrono>
#include <ctime>

#include "model/chat/jinja/limits.hpp"

namespace octavo::model::jinja {
namespace {

std::tm parts_of(std::int64_t now_s) {
  // The years 1 to 9999.
  if (now_s < -62'135'596'800 || now_s >= 253'402'300'800) {
    throw operation_error("strftime_now: the time is outside of the years 1 to 9999");
  }
  using namespace std::chrono;
  const sys_seconds now{seconds{now_s}};
  const sys_days day = floor<days>(now);
  const year_month_day date{day};
  const hh_mm_ss time{now - day};
  std::tm parts{};
  parts.tm_year = static_cast<int>(date.year()) - 1900;
  parts.tm_mon = static_cast<int>(static_cast<unsigned>(date.month())) - 1;
  parts.tm_mday = static_cast<int>(static_cast<unsigned>(date.day()));
  parts.tm_hour = static_cast<int>(time.hours().count());
  parts.tm_min = static_cast<int>(time.minutes().count());
  parts.tm_sec = static_cast<int>(time.seconds().count());
  parts.tm_wday = static_cast<int>(weekday{day}.c_encoding());
  parts.tm_yday = static_cast<int>((day - sys_days{date.year() / January / 1}).count());
  return parts;
}

}  // namespace

std::string clock_text(std::string_view format, std::int64_t now_s) {
  const std::tm parts = parts_of(now_s);
  std::string text;
  for (std::size_t at = 0; at < format.size(); ++at) {
    if (format[at] != '%') {
      text += format[at];
      continue;
    }
    std::string one = "%";
    // The GNU flag against padding.
    if (at + 1 < format.size() && format[at + 1] == '-') one += format[++at];
    const char kind = at + 1 < format.size() ? format[++at] : ' ';
    if (std::string_view("aAbBdeDFHIjmMpRSTuwyY%").find(kind) == std::string_view::npos) {
      throw operation_error("strftime_now: the conversion %" + std::string(1, kind) +
                            " is not supported");
    }
    one += kind;
    std::array<char, 64> buffer{};
    text.append(buffer.data(), std::strftime(buffer.data(), buffer.size(), one.c_str(), &parts));
  }
  return text;
}

}  // namespace octavo::model::jinja
