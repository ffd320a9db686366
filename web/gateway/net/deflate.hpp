// Deflated messages (RFC 7692 §7.2), by zlib. The codecs keep what they allocate,
// so one pair can serve every connection whose messages stand alone.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace octavo::net {

/// Compresses messages with a window of 2^window_bits bytes (9 to 15).
class deflater {
 public:
  deflater(int window_bits, bool takeover);
  ~deflater();
  deflater(const deflater&) = delete;
  deflater& operator=(const deflater&) = delete;

  [[nodiscard]] std::string compress(std::string_view message);

 private:
  struct stream;
  std::unique_ptr<stream> stream_;
  bool takeover_;
};

class inflater {
 public:
  enum class result { ok, too_big, malformed };

  inflater(int window_bits, bool takeover);
  ~inflater();
  inflater(const inflater&) = delete;
  inflater& operator=(const inflater&) = delete;

  /// Appends the message to `out`, which never grows beyond `bytes_max`.
  [[nodiscard]] result decompress(std::string_view compressed, std::size_t bytes_max,
                                  std::string& out);

 private:
  struct stream;
  std::unique_ptr<stream> stream_;
  bool takeover_;
};

}  // namespace octavo::net
