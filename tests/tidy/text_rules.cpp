// Rules about the text of a file: encoding, form, words.
#include <algorithm>
#include <array>
#include <optional>

#include "tests/tidy/rules.hpp"

namespace octavo::tidy {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t columns_max = 100;
constexpr auto clock_home = "actors/wall_clock.cpp"sv;

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Length of the UTF-8 sequence that `text` begins with; 0 when it is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::size_t length = 0;
  if (byte(0) < 0x80) return 1;
  if (byte(0) >= 0xC2 && byte(0) < 0xE0) length = 2;
  if (byte(0) >= 0xE0 && byte(0) < 0xF0) length = 3;
  if (byte(0) >= 0xF0 && byte(0) < 0xF5) length = 4;
  if (length == 0 || text.size() < length) return 0;
  const bool overlong = (byte(0) == 0xE0 && byte(1) < 0xA0) || (byte(0) == 0xF0 && byte(1) < 0x90);
  const bool outside = (byte(0) == 0xED && byte(1) > 0x9F) || (byte(0) == 0xF4 && byte(1) > 0x8F);
  const auto rest = text.substr(1, length - 1);
  const bool whole = std::all_of(rest.begin(), rest.end(), is_continuation);
  return whole && !overlong && !outside ? length : 0;
}

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto length = sequence_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

std::size_t columns(std::string_view line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return !is_continuation(c); }));
}

/// True when `line` holds `word` as a whole word.
bool holds_word(std::string_view line, std::string_view word) {
  for (auto at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
    const auto end = at + word.size();
    if ((at == 0 || !is_word(line[at - 1])) && (end == line.size() || !is_word(line[end]))) {
      return true;
    }
  }
  return false;
}

/// True when `line` holds a path that begins with `root`, rather than one that
/// merely passes through a folder of that name.
bool holds_absolute(std::string_view line, std::string_view root) {
  for (auto at = line.find(root); at != std::string_view::npos; at = line.find(root, at + 1)) {
    if (at == 0 ||
        !(is_word(line[at - 1]) || "./-}~*)"sv.find(line[at - 1]) != std::string_view::npos)) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<violation> check_clock(const source_file& file) {
  constexpr std::array asks{"steady_clock::now"sv, "system_clock::now"sv,
                            "high_resolution_clock::now"sv, "clock_gettime"sv, "gettimeofday"sv};
  const auto folder = folder_of(file.path);
  if (file.path == clock_home || folder == "bench" || folder == "tests") return {};
  std::vector<violation> found;
  for (const auto ask : asks) {
    for (auto at = file.code.find(ask); at != std::string::npos; at = file.code.find(ask, at + 1)) {
      found.push_back({file.path, line_at(file.code, at),
                       std::string(ask) + " is allowed in " + std::string(clock_home) +
                           " only; take the time from the injected clock"});
    }
  }
  return found;
}

std::vector<violation> check_encoding(const source_file& file) {
  std::vector<violation> found;
  if (const auto at = first_invalid_utf8(file.text)) {
    found.push_back({file.path, line_at(file.text, *at), "not UTF-8"});
  }
  if (const auto at = file.text.find('\r'); at != std::string::npos) {
    found.push_back({file.path, line_at(file.text, at), "a carriage return; lines end with LF"});
  }
  if (file.text.empty() || file.text.back() != '\n') {
    found.push_back({file.path, static_cast<int>(lines_of(file.text).size()),
                     "the last line lacks its newline"});
  }
  return found;
}

std::vector<violation> check_form(const source_file& file) {
  std::vector<violation> found;
  if (!is_written(file.path)) return found;
  if (is_cpp(file.path) && !file.text.starts_with("// ")) {
    found.push_back({file.path, 1, "the file opens with a // comment that says what it is for"});
  }
  const auto lines = lines_of(file.text);
  if (is_header(file.path) &&
      std::find(lines.begin(), lines.end(), "#pragma once") == lines.end()) {
    found.push_back({file.path, 1, "a header says #pragma once"});
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (columns(lines[i]) > columns_max && lines[i].find("://") == std::string_view::npos) {
      found.push_back({file.path, static_cast<int>(i) + 1,
                       std::to_string(columns(lines[i])) + " columns; allowed are " +
                           std::to_string(columns_max)});
    }
  }
  return found;
}

std::vector<violation> check_words(const source_file& file) {
  constexpr std::array unfinished{"TODO"sv, "FIXME"sv, "XXX"sv};
  constexpr std::array machine_roots{"/home/"sv, "/root/"sv, "/work/"sv, "/tmp/"sv};
  std::vector<violation> found;
  const bool holds_the_words_itself = file.path.starts_with("tests/tidy/");
  if (holds_the_words_itself || !(is_written(file.path) || file.path.ends_with(".md")))
    return found;
  const auto lines = lines_of(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const int line = static_cast<int>(i) + 1;
    for (const auto word : unfinished) {
      if (holds_word(lines[i], word)) {
        found.push_back({file.path, line, std::string(word) + ": finish it or file it"});
      }
    }
    for (const auto root : machine_roots) {
      if (holds_absolute(lines[i], root) && !(root == machine_roots.back() && is_test(file.path))) {
        found.push_back({file.path, line, "a path of one machine: " + std::string(root)});
      }
    }
  }
  return found;
}

}  // namespace octavo::tidy
