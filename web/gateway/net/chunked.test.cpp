// The examples and bounds of RFC 9112 §7.1, cut in every way.
#include "web/gateway/net/chunked.hpp"

#include "tests/support/catch.hpp"

using octavo::net::chunk_decoder;
using status = chunk_decoder::status;

namespace {

struct outcome {
  status last = status::more;
  std::string body;
  std::size_t used = 0;
};

outcome decode(std::string_view bytes, std::size_t step = SIZE_MAX, std::size_t limit = 100) {
  chunk_decoder decoder;
  outcome result;
  while (!bytes.empty() && decoder.now() == status::more) {
    const auto used = decoder.feed(bytes.substr(0, step), result.body, limit);
    bytes.remove_prefix(used);
    result.used += used;
  }
  result.last = decoder.now();
  return result;
}

}  // namespace

TEST_CASE("chunks are joined however they are cut, and nothing more is taken") {
  const std::string coded = "4;name=\"v\"\r\nWiki\r\n00A ; x\r\npedia in \n\r\n0\r\nA: b\r\n\r\n";
  for (std::size_t step = 1; step < coded.size() + 4; ++step) {
    const auto result = decode(coded + "GET", step);
    CHECK(result.last == status::done);
    CHECK(result.body == "Wikipedia in \n");
    CHECK(result.used == coded.size());
  }
}

TEST_CASE("line ends, sizes and trailers are taken to the letter") {
  for (const auto* bad : {"\r\n", "g\r\n", " 1\r\n", "1 \r\n", "+1\r\n", "-1\r\n", "0x1\r\n", "1\n",
                          "1\r\r\n", "1,2\r\n", "1 2\r\n", "1;\x01\r\n", "fffffffffffffffff\r\n",
                          "1\r\naXX0\r\n\r\n", "1\r\nab\r\n", "1\r\na\n0\r\n\r\n",
                          "0\r\nbad trailer\r\n\r\n", "0\r\n: x\r\n", "0\r\n\n"}) {
    CAPTURE(bad);
    CHECK(decode(bad).last == status::malformed);
  }
}

TEST_CASE("content, size lines and trailers are bounded") {
  CHECK(decode("64\r\n" + std::string(100, 'a') + "\r\n0\r\n\r\n").last == status::done);
  CHECK(decode("65\r\n").last == status::too_big);
  CHECK(decode("63\r\n" + std::string(99, 'a') + "\r\n2\r\n").last == status::too_big);
  CHECK(decode("ffffffffffffffff\r\n").last == status::too_big);
  CHECK(decode("1;" + std::string(2000, 'x')).last == status::long_line);
  std::string trailers = "0\r\n";
  for (int i = 0; i < 2000; ++i) trailers += "Name: value\r\n";
  CHECK(decode(trailers).last == status::long_line);
}
