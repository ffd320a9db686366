// Compact integers for the decision log: LEB128, seven bits a byte, low first;
// signed values zigzag-coded so that small negatives stay small.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

namespace octavo {

class byte_writer {
 public:
  void put(std::uint64_t value) {
    while (value >= 0x80) {
      bytes_.push_back(static_cast<std::byte>(value | 0x80));
      value >>= 7;
    }
    bytes_.push_back(static_cast<std::byte>(value));
  }
  void put_signed(std::int64_t value) {
    put((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }
  void put_fixed64(std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) {
      bytes_.push_back(static_cast<std::byte>(value >> shift));
    }
  }

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  void clear() { bytes_.clear(); }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads what byte_writer wrote; throws std::out_of_range past the end.
class byte_reader {
 public:
  explicit byte_reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  [[nodiscard]] std::uint64_t get() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto next = static_cast<std::uint64_t>(take());
      value |= (next & 0x7f) << shift;
      if (next < 0x80) return value;
    }
    throw std::out_of_range("an integer of more than 64 bits");
  }
  [[nodiscard]] std::int64_t get_signed() {
    const std::uint64_t coded = get();
    return static_cast<std::int64_t>((coded >> 1) ^ (~(coded & 1) + 1));
  }
  [[nodiscard]] std::uint64_t get_fixed64() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 8) {
      value |= static_cast<std::uint64_t>(take()) << shift;
    }
    return value;
  }
  /// A count of items that take at least one byte each: never more than is left.
  [[nodiscard]] std::size_t get_count() {
    const std::uint64_t count = get();
    if (count > bytes_.size() - at_) throw std::out_of_range("a count larger than the record");
    return static_cast<std::size_t>(count);
  }

  [[nodiscard]] bool done() const { return at_ == bytes_.size(); }

  /// One byte as it is.
  [[nodiscard]] std::byte get_byte() { return take(); }

 private:
  std::byte take() {
    if (at_ >= bytes_.size()) throw std::out_of_range("the record ends too early");
    return bytes_[at_++];
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

}  // namespace octavo
