// SHA-256 (FIPS 180-4), for checking that a downloaded file is the one meant.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace octavo::model {

/// Feed bytes with update, then take the digest once.
class sha256 {
 public:
  void update(std::span<const std::byte> bytes);
  /// 64 lower-case hexadecimal digits.
  [[nodiscard]] std::string hex_digest();

 private:
  void compress(const std::byte* block);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> pending_{};
  std::size_t pending_bytes_ = 0;
  std::uint64_t total_bytes_ = 0;
};

}  // namespace octavo::model
