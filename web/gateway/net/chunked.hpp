// The chunked transfer coding of a request's body (RFC 9112 §7.1), to the letter:
// http_parser as Debian builds it skips the checks of line ends, and proxies
// that differ there can be talked into smuggling.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace octavo::net {

class chunk_decoder {
 public:
  enum class status { more, done, malformed, too_big, long_line };

  /// Consumes bytes up to the end of the coding or of `data`, appends the content
  /// to `body`, and returns how many. Content beyond `bytes_max` and trailers
  /// beyond 16 KiB are too big; extensions and trailers are dropped.
  std::size_t feed(std::string_view data, std::string& body, std::size_t bytes_max);

  [[nodiscard]] status now() const { return status_; }

 private:
  enum class part { size_line, content, content_end, trailer };

  /// Moves bytes to line_ up to a line end. Whether the line is complete.
  bool take_line(std::string_view data, std::size_t& used);
  void line_complete(std::size_t room);
  void begin_chunk(std::size_t room);

  status status_ = status::more;
  part part_ = part::size_line;
  std::string line_;
  std::uint64_t left_ = 0;  ///< of the chunk's content
  std::size_t trailer_bytes_ = 0;
};

}  // namespace octavo::net
