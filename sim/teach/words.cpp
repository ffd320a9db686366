// Small text helpers: see words.hpp.
#include "sim/teach/words.hpp"

#include <array>
#include <cmath>
#include <cstdio>

namespace octavo::sim::teach {

std::string readable(micros time) {
  const auto us = static_cast<double>(time.raw());
  std::array<char, 32> text{};
  if (time.raw() == 0) return "0 ms";
  if (std::abs(us) < 1e3) {
    std::snprintf(text.data(), text.size(), "%.0f us", us);
  } else if (std::abs(us) < 1e6) {
    std::snprintf(text.data(), text.size(), "%.1f ms", us * 1e-3);
  } else {
    std::snprintf(text.data(), text.size(), "%.3f s", us * 1e-6);
  }
  return text.data();
}

std::string list_of(const std::vector<std::uint64_t>& ids, std::size_t most) {
  std::string text;
  const std::size_t shown = ids.size() > most ? most : ids.size();
  for (std::size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == shown && shown == ids.size();
    if (i > 0) text += last ? " and " : ", ";
    text += std::to_string(ids[i]);
  }
  if (shown < ids.size()) text += " and " + std::to_string(ids.size() - shown) + " more";
  return text;
}

std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent) {
  std::string out;
  std::size_t used = 0;
  bool at_start = true;
  std::size_t at = 0;
  while (at < text.size()) {
    // A word with the spaces before it, so that alignment inside a line stays.
    std::size_t word = text.find_first_not_of(' ', at);
    if (word == std::string_view::npos) break;
    std::size_t end = text.find(' ', word);
    if (end == std::string_view::npos) end = text.size();
    if (!at_start && used + (end - at) > columns) {
      out += '\n' + std::string(indent, ' ');
      used = indent;
      at = word;
    }
    out += text.substr(at, end - at);
    used += end - at;
    at_start = false;
    at = end;
  }
  return out;
}

std::size_t display_columns(std::string_view text) {
  std::size_t columns = 0;
  for (const char c : text) columns += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
  return columns;
}

std::string printable(std::string_view text, bool utf8) {
  std::string out{text};
  for (char& c : out) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F || (!utf8 && byte >= 0x80)) c = '?';
  }
  return out;
}

std::string counted(std::int64_t count, std::string_view noun) {
  std::string text = std::to_string(count) + ' ' + std::string(noun);
  if (count != 1) text += 's';
  return text;
}

std::string percent(double part, double whole) {
  if (whole <= 0 || part <= 0) return "0 %";
  const double share = 100 * part / whole;
  if (share < 1) return "under 1 %";
  return std::to_string(std::lround(share)) + " %";
}

}  // namespace octavo::sim::teach
