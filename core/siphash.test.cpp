// SipHash-2-4-128 against an independent implementation.
#include "core/siphash.hpp"

#include <vector>

#include "tests/support/catch.hpp"

using namespace octavo;

namespace {

// Key 00 01 … 0f, message 00 01 … (n-1), as in the reference implementation's
// table. The expected words were computed with libsodium's siphashx24.
hash128 hash_of_counting_bytes(std::size_t length) {
  std::vector<std::byte> message(length);
  for (std::size_t i = 0; i < length; ++i) message[i] = static_cast<std::byte>(i);
  return siphash128({0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL}, message);
}

}  // namespace

TEST_CASE("SipHash-2-4-128 agrees with libsodium at every tail length class") {
  CHECK(hash_of_counting_bytes(0) == hash128{0xe6a825ba047f81a3ULL, 0x930255c71472f66dULL});
  CHECK(hash_of_counting_bytes(1) == hash128{0x44af996bd8c187daULL, 0x45fc229b11597634ULL});
  CHECK(hash_of_counting_bytes(7) == hash128{0x53c1dbd8beebf1a1ULL, 0x3982f01fa64ab8c0ULL});
  CHECK(hash_of_counting_bytes(8) == hash128{0x61f55862baa9623bULL, 0xb49714f364e2830fULL});
  CHECK(hash_of_counting_bytes(15) == hash128{0x11a8b03399e99354ULL, 0xd9c3cf970fec087eULL});
  CHECK(hash_of_counting_bytes(16) == hash128{0xbb54b067caa4e26eULL, 0x77052385bf1533fdULL});
  CHECK(hash_of_counting_bytes(63) == hash128{0x4a83502f77d15051ULL, 0x7cbd3f979a063e50ULL});
}

TEST_CASE("SipHash depends on its key") {
  const std::vector<std::byte> message(5);
  CHECK(siphash128({1, 2}, message) != siphash128({1, 3}, message));
}
