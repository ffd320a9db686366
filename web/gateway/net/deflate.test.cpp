// The examples of RFC 7692 §7.2.3, round trips, and bombs.
#include "web/gateway/net/deflate.hpp"

#include <random>

#include "tests/support/catch.hpp"

using namespace octavo::net;
using result = inflater::result;

namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

std::string inflated(inflater& codec, const std::string& compressed) {
  std::string out;
  REQUIRE(codec.decompress(compressed, 1'000'000, out) == result::ok);
  return out;
}

const auto hello = bytes({0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00});

}  // namespace

TEST_CASE("the examples of RFC 7692 §7.2.3 are Hello") {
  inflater codec(15, false);
  CHECK(inflated(codec, hello) == "Hello");
  CHECK(inflated(codec, bytes({0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f,
                               0x00})) == "Hello");
  CHECK(inflated(codec, bytes({0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00})) == "Hello");
  CHECK(inflated(codec, bytes({0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9,
                               0x07, 0x00})) == "Hello");
}

TEST_CASE("a message may refer to the one before only with takeover") {
  const auto again = bytes({0xf2, 0x00, 0x11, 0x00, 0x00});
  inflater remembering(15, true);
  CHECK(inflated(remembering, hello) == "Hello");
  CHECK(inflated(remembering, again) == "Hello");
  inflater forgetting(15, false);
  CHECK(inflated(forgetting, hello) == "Hello");
  std::string out;
  CHECK(forgetting.decompress(again, 100, out) == result::malformed);
}

TEST_CASE("what is compressed comes back, for every window and size") {
  std::mt19937 random(7);
  for (const int bits : {9, 12, 15}) {
    for (const bool takeover : {false, true}) {
      deflater packing(bits, takeover);
      inflater unpacking(bits, takeover);
      for (const std::size_t size : {0U, 1U, 100U, 5000U, 70'000U, 300'000U}) {
        std::string message(size, 'a');
        for (auto& c : message) c = static_cast<char>('a' + random() % (size % 2 == 0 ? 26 : 2));
        CHECK(inflated(unpacking, packing.compress(message)) == message);
      }
    }
  }
}

TEST_CASE("a bomb is stopped at the limit") {
  deflater packing(15, false);
  const auto bomb = packing.compress(std::string(10'000'000, '\0'));
  CHECK(bomb.size() < 100'000);
  inflater codec(15, false);
  std::string out;
  CHECK(codec.decompress(bomb, 100'000, out) == result::too_big);
  CHECK(out.size() <= 100'000);
  CHECK(inflated(codec, hello) == "Hello");
}

TEST_CASE("the limit is exact") {
  inflater codec(15, false);
  std::string out;
  CHECK(codec.decompress(hello, 5, out) == result::ok);
  out.clear();
  CHECK(codec.decompress(hello, 4, out) == result::too_big);
}

TEST_CASE("bytes that are not deflated are refused, and the codec goes on") {
  inflater codec(15, false);
  std::string out;
  CHECK(codec.decompress(bytes({0xff, 0xff, 0xff}), 100, out) == result::malformed);
  CHECK(inflated(codec, hello) == "Hello");
}
