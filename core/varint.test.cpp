// LEB128 and zigzag against the bytes that their definitions give.
#include "core/varint.hpp"

#include <limits>

#include "tests/support/catch.hpp"

using namespace octavo;

namespace {

std::vector<int> bytes_of(const byte_writer& out) {
  std::vector<int> bytes;
  for (const std::byte b : out.bytes()) bytes.push_back(std::to_integer<int>(b));
  return bytes;
}

using bytes = std::vector<int>;

}  // namespace

TEST_CASE("integers have the bytes of LEB128") {
  byte_writer out;
  out.put(0);
  out.put(127);
  out.put(128);
  out.put(624485);  // the example of the DWARF specification: E5 8E 26
  CHECK(bytes_of(out) == bytes{0, 127, 0x80, 1, 0xE5, 0x8E, 0x26});
}

TEST_CASE("signed integers are zigzag-coded: 0, -1, 1, -2 are 0, 1, 2, 3") {
  byte_writer out;
  for (const std::int64_t v : {0, -1, 1, -2}) out.put_signed(v);
  CHECK(bytes_of(out) == bytes{0, 1, 2, 3});
}

TEST_CASE("every value comes back") {
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  byte_writer out;
  for (int shift = 0; shift < 64; ++shift) out.put(std::uint64_t{1} << shift);
  for (const std::int64_t v : {least, most, std::int64_t{-64}, std::int64_t{63}}) {
    out.put_signed(v);
  }
  out.put_fixed64(0x0123456789abcdefULL);
  byte_reader in{out.bytes()};
  for (int shift = 0; shift < 64; ++shift) CHECK(in.get() == std::uint64_t{1} << shift);
  for (const std::int64_t v : {least, most, std::int64_t{-64}, std::int64_t{63}}) {
    CHECK(in.get_signed() == v);
  }
  CHECK(in.get_fixed64() == 0x0123456789abcdefULL);
  CHECK(in.done());
}

TEST_CASE("bytes that end too early, run on too long or promise too much are refused") {
  const std::vector<std::byte> open_end(3, std::byte{0x80});
  CHECK_THROWS_AS(byte_reader{open_end}.get(), std::out_of_range);
  const std::vector<std::byte> too_long(11, std::byte{0x80});
  CHECK_THROWS_AS(byte_reader{too_long}.get(), std::out_of_range);
  const std::vector<std::byte> short_word(7);
  CHECK_THROWS_AS(byte_reader{short_word}.get_fixed64(), std::out_of_range);
  const std::vector<std::byte> count_of_three{std::byte{3}, std::byte{0}, std::byte{0}};
  CHECK_THROWS_AS(byte_reader{count_of_three}.get_count(), std::out_of_range);
}
