// Reads little-endian numbers and strings from bytes that nobody vouches for.
// Every read names the field that it is for, so that a cut file says where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace octavo::model {

class byte_reader {
 public:
  /// `where` names the file in messages.
  byte_reader(std::span<const std::byte> bytes, std::string_view where)
      : bytes_(bytes), where_(where) {}

  [[nodiscard]] std::size_t position() const { return position_; }
  [[nodiscard]] std::size_t remaining() const { return bytes_.size() - position_; }

  /// Throws input_error: file, field, what is wrong, and where in the file.
  [[noreturn]] void fail(std::string_view field, std::string_view why) const {
    throw input_error(std::string(where_) + ": " + std::string(field) + " " + std::string(why) +
                      " (at byte " + std::to_string(position_) + ")");
  }

  std::span<const std::byte> take(std::uint64_t count, std::string_view field) {
    if (count > remaining()) {
      fail(field, "needs " + std::to_string(count) + " bytes, and the file has " +
                      std::to_string(remaining()) + " left");
    }
    const auto part = bytes_.subspan(position_, count);
    position_ += count;
    return part;
  }

  template <class Number>
  Number number(std::string_view field) {
    Number value;
    std::memcpy(&value, take(sizeof value, field).data(), sizeof value);
    return value;
  }

  /// A 64-bit length and that many bytes.
  std::string_view text(std::string_view field) {
    const auto length = number<std::uint64_t>(field);
    const auto part = take(length, field);
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }

 private:
  std::span<const std::byte> bytes_;
  std::string_view where_;
  std::size_t position_ = 0;
};

}  // namespace octavo::model
