// A line at a time, and content by its announced length.
#include "web/gateway/net/chunked.hpp"

#include <algorithm>
#include <charconv>

#include "web/gateway/net/http.hpp"

namespace octavo::net {
namespace {

constexpr std::size_t size_line_bytes_max = 1024;
constexpr std::size_t trailer_bytes_max = 16 * 1024;

}  // namespace

std::size_t chunk_decoder::feed(std::string_view data, std::string& body, std::size_t bytes_max) {
  std::size_t used = 0;
  while (used < data.size() && status_ == status::more) {
    if (part_ == part::content) {
      const auto count = std::min<std::uint64_t>(left_, data.size() - used);
      body.append(data.substr(used, count));
      used += count;
      left_ -= count;
      if (left_ == 0) part_ = part::content_end;
    } else if (take_line(data, used)) {
      line_complete(bytes_max - body.size());
      line_.clear();
    }
  }
  return used;
}

bool chunk_decoder::take_line(std::string_view data, std::size_t& used) {
  const auto line_feed = data.find('\n', used);
  const bool ends = line_feed != std::string_view::npos;
  const auto end = ends ? line_feed + 1 : data.size();
  line_.append(data.substr(used, end - used));
  used = end;
  if (line_.size() > (part_ == part::trailer ? trailer_bytes_max : size_line_bytes_max)) {
    status_ = status::long_line;
    return false;
  }
  if (!ends) return false;
  if (!line_.ends_with("\r\n")) {
    status_ = status::malformed;
    return false;
  }
  line_.resize(line_.size() - 2);
  return true;
}

void chunk_decoder::line_complete(std::size_t room) {
  if (part_ == part::size_line) return begin_chunk(room);
  if (part_ == part::content_end) {
    part_ = part::size_line;
    if (!line_.empty()) status_ = status::malformed;
    return;
  }
  if (line_.empty()) {
    status_ = status::done;
    return;
  }
  trailer_bytes_ += line_.size();
  const std::string_view line = line_;
  if (trailer_bytes_ > trailer_bytes_max) {
    status_ = status::long_line;
  } else if (!is_token(line.substr(0, line.find(':'))) || !is_field_value(line)) {
    status_ = status::malformed;
  }
}

/// The line is a size in hexadecimal digits, and extensions behind a semicolon.
void chunk_decoder::begin_chunk(std::size_t room) {
  const char* const end = line_.data() + line_.size();
  const auto [rest, error] = std::from_chars(line_.data(), end, left_, 16);
  const auto extension = trimmed({rest, static_cast<std::size_t>(end - rest)});
  const bool is_extension = extension.empty() || extension.front() == ';';
  const bool is_blank = extension.empty() && rest != end;
  if (error != std::errc{} || !is_extension || is_blank || !is_field_value(extension)) {
    status_ = status::malformed;
  } else if (left_ > room) {
    status_ = status::too_big;
  } else {
    part_ = left_ == 0 ? part::trailer : part::content;
  }
}

}  // namespace octavo::net
