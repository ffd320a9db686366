// SipHash-2-4-128: see siphash.hpp.
#include "core/siphash.hpp"

#include <bit>
#include <cstring>

namespace octavo {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read in host order");

struct sip_state {
  std::uint64_t v0, v1, v2, v3;

  void round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }

  void absorb(std::uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }

  std::uint64_t squeeze() {
    for (int i = 0; i < 4; ++i) round();
    return v0 ^ v1 ^ v2 ^ v3;
  }
};

}  // namespace

hash128 siphash128(const hash128& key, std::span<const std::byte> data) {
  sip_state state{key.lo ^ 0x736f6d6570736575ULL, key.hi ^ 0x646f72616e646f6dULL ^ 0xee,
                  key.lo ^ 0x6c7967656e657261ULL, key.hi ^ 0x7465646279746573ULL};
  std::size_t at = 0;
  for (; at + 8 <= data.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data.data() + at, 8);
    state.absorb(word);
  }
  std::uint64_t last = static_cast<std::uint64_t>(data.size()) << 56;
  if (at < data.size()) {
    std::uint64_t tail = 0;
    std::memcpy(&tail, data.data() + at, data.size() - at);
    last |= tail;
  }
  state.absorb(last);
  state.v2 ^= 0xee;
  hash128 result;
  result.lo = state.squeeze();
  state.v1 ^= 0xdd;
  result.hi = state.squeeze();
  return result;
}

std::string to_hex(const hash128& hash) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint64_t half : {hash.hi, hash.lo}) {
    for (int shift = 60; shift >= 0; shift -= 4) text += digits[half >> shift & 0xf];
  }
  return text;
}

}  // namespace octavo
