// The compression function of FIPS 180-4, section 6.2.
#include "model/sha256.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace octavo::model {
namespace {

/// Fractional parts of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, 64> constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t big_endian(const std::byte* at) {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word = word << 8U | std::to_integer<std::uint32_t>(at[i]);
  return word;
}

}  // namespace

void sha256::compress(const std::byte* block) {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t t = 0; t < 16; ++t) w[t] = big_endian(block + 4 * t);
  for (std::size_t t = 16; t < 64; ++t) {
    const std::uint32_t a = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ w[t - 15] >> 3U;
    const std::uint32_t b = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ w[t - 2] >> 10U;
    w[t] = w[t - 16] + a + w[t - 7] + b;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t t = 0; t < 64; ++t) {
    const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + constants[t] + w[t];
    const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const std::array<std::uint32_t, 8> added{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state_[i] += added[i];
}

void sha256::update(std::span<const std::byte> bytes) {
  total_bytes_ += bytes.size();
  while (!bytes.empty()) {
    if (pending_bytes_ == 0 && bytes.size() >= 64) {
      compress(bytes.data());
      bytes = bytes.subspan(64);
      continue;
    }
    const std::size_t taken = std::min(bytes.size(), 64 - pending_bytes_);
    std::memcpy(pending_.data() + pending_bytes_, bytes.data(), taken);
    pending_bytes_ += taken;
    bytes = bytes.subspan(taken);
    if (pending_bytes_ == 64) {
      compress(pending_.data());
      pending_bytes_ = 0;
    }
  }
}

std::string sha256::hex_digest() {
  // A one bit, zeros up to 56 modulo 64 bytes, and the length in bits.
  std::array<std::byte, 72> end{std::byte{0x80}};
  const std::uint64_t bits = total_bytes_ * 8;
  const std::size_t zeros = (119 - pending_bytes_) % 64;
  for (std::size_t i = 0; i < 8; ++i) {
    end[1 + zeros + i] = static_cast<std::byte>(bits >> (56 - 8 * i));
  }
  update(std::span(end).first(1 + zeros + 8));
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint32_t word : state_) {
    for (int shift = 28; shift >= 0; shift -= 4) text += digits[word >> shift & 15U];
  }
  return text;
}

}  // namespace octavo::model
