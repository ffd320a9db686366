// SipHash-2-4 with a 128-bit result: the keyed hash behind prefix-block keys and
// the decision log's chain. Fast on short inputs and infeasible to collide for
// someone who does not hold the key.
//
// Specification: J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input
// PRF" (2012), and the 128-bit variant of its reference implementation.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace octavo {

/// 128 bits: a hash, or the key of one.
struct hash128 {
  std::uint64_t lo = 0;
  std::uint64_t hi = 0;

  friend constexpr auto operator<=>(const hash128&, const hash128&) = default;
};

/// SipHash-2-4-128 of `data` under `key`. `lo` holds the first eight bytes of
/// the specified output, little endian.
[[nodiscard]] hash128 siphash128(const hash128& key, std::span<const std::byte> data);

/// 32 hexadecimal digits, the most significant first.
[[nodiscard]] std::string to_hex(const hash128& hash);

}  // namespace octavo
