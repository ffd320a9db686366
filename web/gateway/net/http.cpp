// Header rules and status lines.
#include "web/gateway/net/http.hpp"

#include <algorithm>
#include <array>

#include "core/error.hpp"

namespace octavo::net {
namespace {

constexpr auto phrases = std::to_array<std::pair<int, std::string_view>>({
    {100, "Continue"},
    {101, "Switching Protocols"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {411, "Length Required"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {426, "Upgrade Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
});

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_token_character(char c) {
  constexpr std::string_view punctuation = "!#$%&'*+-.^_`|~";
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         punctuation.find(c) != std::string_view::npos;
}

void append_field(std::string& text, const header_list::field& field) {
  text.append(field.first).append(": ").append(field.second).append("\r\n");
}

}  // namespace

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t";
  const auto first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_character);
}

bool is_field_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return c == '\t' || (byte >= 0x20 && byte != 0x7f);
  });
}

void header_list::set(std::string_view name, std::string value) {
  std::erase_if(fields_, [&](const field& f) { return equal_ignoring_case(f.first, name); });
  add(std::string(name), std::move(value));
}

std::optional<std::string_view> header_list::find(std::string_view name) const {
  for (const auto& [field_name, value] : fields_) {
    if (equal_ignoring_case(field_name, name)) return value;
  }
  return std::nullopt;
}

std::string header_list::joined(std::string_view name) const {
  std::string all;
  for (const auto& [field_name, value] : fields_) {
    if (!equal_ignoring_case(field_name, name)) continue;
    if (!all.empty()) all += ", ";
    all += value;
  }
  return all;
}

std::size_t header_list::count(std::string_view name) const {
  return static_cast<std::size_t>(
      std::count_if(fields_.begin(), fields_.end(),
                    [&](const field& f) { return equal_ignoring_case(f.first, name); }));
}

bool header_list::has_token(std::string_view name, std::string_view token) const {
  for (const auto& [field_name, value] : fields_) {
    if (!equal_ignoring_case(field_name, name)) continue;
    std::string_view rest = value;
    while (!rest.empty()) {
      const auto comma = rest.find(',');
      if (equal_ignoring_case(trimmed(rest.substr(0, comma)), token)) return true;
      rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    }
  }
  return false;
}

std::string_view reason_phrase(int status) {
  const auto found = std::find_if(phrases.begin(), phrases.end(),
                                  [&](const auto& phrase) { return phrase.first == status; });
  return found == phrases.end() ? std::string_view("Unknown") : found->second;
}

void validate_response_headers(const header_list& headers) {
  constexpr std::array<std::string_view, 3> reserved{"Content-Length", "Transfer-Encoding",
                                                     "Connection"};
  for (const auto& [name, value] : headers) {
    if (!is_token(name)) {
      throw input_error("response header name of " + std::to_string(name.size()) +
                        " bytes is not a token");
    }
    if (!is_field_value(value)) {
      throw input_error("response header " + name +
                        ": the value has control characters; allowed are visible characters, "
                        "spaces and tabs");
    }
    for (const auto own : reserved) {
      if (equal_ignoring_case(name, own)) {
        throw input_error("response header " + name + " is set by the server itself");
      }
    }
  }
}

std::string format_head(int status, const header_list& headers, const header_list& own) {
  std::string head = "HTTP/1.1 " + std::to_string(status) + " ";
  head.append(reason_phrase(status)).append("\r\n");
  for (const auto& field : headers) append_field(head, field);
  for (const auto& field : own) append_field(head, field);
  head += "\r\n";
  return head;
}

}  // namespace octavo::net
