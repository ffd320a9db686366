// Reads plain and gzip files through zlib; see text_source.hpp.
#include "traces/formats/text_source.hpp"

#include <simdjson.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace octavo::traces {
namespace {

constexpr std::size_t first_buffer_bytes = std::size_t{1} << 18;
/// simdjson's own limit for one document.
constexpr std::size_t buffer_bytes_max = (std::size_t{1} << 32) - 1;

gzFile handle(void* file) {
  return static_cast<gzFile>(file);
}

}  // namespace

void text_source::file_closer::operator()(void* file) const {
  gzclose_r(handle(file));
}

text_source::text_source(const std::filesystem::path& file)
    : name_(file.string()), buffer_(first_buffer_bytes + simdjson::SIMDJSON_PADDING) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) fail(at(), "is a folder; expected a file");
  errno = 0;
  file_.reset(gzopen(name_.c_str(), "rb"));
  if (!file_) fail(at(), std::string("cannot be opened: ") + std::strerror(errno));
  fill();
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (std::string_view(buffer_.data(), end_).substr(0, 3) == byte_order_mark) begin_ = 3;
}

void text_source::fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  std::size_t capacity = buffer_.size() - simdjson::SIMDJSON_PADDING;
  if (end_ == capacity) {
    if (capacity >= buffer_bytes_max) {
      fail({name_, line_ + 1}, "is longer than 4 GiB, more than one line or document may be");
    }
    capacity = std::min(2 * capacity, buffer_bytes_max);
    buffer_.resize(capacity + simdjson::SIMDJSON_PADDING);
  }
  const auto wanted = static_cast<unsigned>(std::min(capacity - end_, std::size_t{1} << 26));
  const int got = gzread(handle(file_.get()), buffer_.data() + end_, wanted);
  int status = Z_OK;
  const char* message = gzerror(handle(file_.get()), &status);
  if (got < 0 || (got == 0 && status != Z_OK && status != Z_STREAM_END)) {
    fail({name_, line_ + 1}, std::string("cannot be read: ") + message);
  }
  at_end_ = got == 0;
  end_ += static_cast<std::size_t>(got);
}

std::optional<std::size_t> text_source::line_bytes() {
  std::size_t scanned = 0;
  for (;;) {
    const char* from = buffer_.data() + begin_;
    const std::size_t unread = end_ - begin_;
    if (const void* end = std::memchr(from + scanned, '\n', unread - scanned)) {
      return static_cast<const char*>(end) - from;
    }
    if (at_end_) return unread == 0 ? std::nullopt : std::optional(unread);
    scanned = unread;
    fill();
  }
}

std::optional<std::string_view> text_source::peek_line() {
  while (const auto bytes = line_bytes()) {
    std::string_view line(buffer_.data() + begin_, *bytes);
    if (!trimmed(line).empty()) {
      if (line.back() == '\r') line.remove_suffix(1);
      return line;
    }
    begin_ = std::min(begin_ + *bytes + 1, end_);
    ++line_;
  }
  return std::nullopt;
}

std::optional<std::string_view> text_source::next_line() {
  const auto line = peek_line();
  if (!line) return std::nullopt;
  begin_ = std::min(begin_ + *line_bytes() + 1, end_);
  ++line_;
  return line;
}

std::string_view text_source::rest() {
  while (!at_end_) fill();
  return {buffer_.data() + begin_, end_ - begin_};
}

}  // namespace octavo::traces
