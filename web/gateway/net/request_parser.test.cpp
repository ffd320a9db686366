// Requests by the text of RFC 9112, and those that smuggle, cut in every way.
#include "web/gateway/net/request_parser.hpp"

#include <optional>

#include "tests/support/catch.hpp"

using namespace octavo::net;
using state = request_parser::state;

namespace {

/// Feeds everything, `step` bytes at a time; returns what was left over.
std::string feed(request_parser& parser, std::string_view bytes, std::size_t step = SIZE_MAX) {
  while (!bytes.empty()) {
    const auto piece = bytes.substr(0, step);
    const auto used = parser.feed(piece);
    bytes.remove_prefix(used);
    const bool over = parser.now() == state::complete || parser.now() == state::failed;
    if (over || used == 0) break;
  }
  return std::string(bytes);
}

/// Status with which `bytes` are refused; 0 where they are a whole request, -1
/// where more is awaited.
int refusal(std::string_view bytes, const server_options& options = {}) {
  request_parser parser(options);
  feed(parser, bytes);
  if (parser.now() == state::complete) return 0;
  return parser.now() == state::failed ? parser.failure().status : -1;
}

std::string get(const std::string& headers) {
  return "GET / HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n";
}

std::string post(const std::string& headers, const std::string& rest = {}) {
  return "POST / HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n" + rest;
}

}  // namespace

TEST_CASE("a request is the same however its bytes are cut") {
  const std::string bytes =
      "POST /a/b?c=d&e HTTP/1.1\r\nHost: x\r\nX-Empty:\r\nX-Pad:   v \t\r\n"
      "Transfer-Encoding: chunked\r\n\r\n"
      "3;ext=1\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\nNEXT";
  const server_options options;
  for (std::size_t step = 1; step <= bytes.size(); ++step) {
    request_parser parser(options);
    const auto left = feed(parser, bytes, step);
    REQUIRE(parser.now() == state::complete);
    CHECK(left == "NEXT");
    CHECK(parser.keep_alive());
    const auto whole = parser.take();
    CHECK(whole.method == "POST");
    CHECK(whole.target == "/a/b?c=d&e");
    CHECK(whole.path == "/a/b");
    CHECK(whole.query == "c=d&e");
    CHECK(whole.body == "abc0123456789");
    CHECK(whole.headers.find("x-empty") == "");
    CHECK(whole.headers.find("x-pad") == "v");
    CHECK_FALSE(whole.headers.find("Trailer"));
    CHECK_FALSE(parser.begun());
  }
}

TEST_CASE("requests follow one another on one parser") {
  const server_options options;
  request_parser parser(options);
  std::string bytes = get({}) + post("Content-Length: 2\r\n", "hi") + "\r\n" + get({});
  for (const auto* body : {"", "hi", ""}) {
    bytes = feed(parser, bytes);
    REQUIRE(parser.now() == state::complete);
    CHECK(parser.take().body == body);
  }
  CHECK(bytes.empty());
}

TEST_CASE("what could smuggle a second request is refused") {
  const std::string chunk = "1\r\na\r\n0\r\n\r\n";
  CHECK(refusal(post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", chunk)) == 400);
  CHECK(refusal(post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", chunk)) == 400);
  CHECK(refusal(post("Content-Length: 1\r\nContent-Length: 1\r\n", "a")) == 400);
  CHECK(refusal(post("Content-Length: 1\r\nContent-Length: 2\r\n", "ab")) == 400);
  CHECK(refusal(post("Content-Length: 1, 1\r\n", "a")) == 400);
  CHECK(refusal(post("Content-Length: +1\r\n", "a")) == 400);
  CHECK(refusal(post("Content-Length: -1\r\n", "a")) == 400);
  CHECK(refusal(post("Content-Length: 0x1\r\n", "a")) == 400);
  CHECK(refusal(post("Content-Length: 99999999999999999999999\r\n")) == 400);
  CHECK(refusal(post("Content-Length : 1\r\n", "a")) == 400);
  CHECK(refusal(post("Transfer-Encoding: xchunked\r\n", chunk)) >= 400);
  CHECK(refusal(post("Transfer-Encoding: gzip, chunked\r\n", chunk)) == 501);
  CHECK(refusal(post("Transfer-Encoding: chunked, identity\r\n", chunk)) >= 400);
  CHECK(refusal(post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", chunk)) >=
        400);
  CHECK(refusal(post("Transfer-Encoding:\vchunked\r\n", chunk)) >= 400);
  CHECK(refusal("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk) == 400);
  CHECK(refusal(get("X: a\r\n b\r\n")) == 400);
  CHECK(refusal("GET / HTTP/1.1\nHost: a\n\n") == 400);
  CHECK(refusal("GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n") == 400);
  CHECK(refusal("GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n") == 400);
  CHECK(refusal("GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n") == 400);
  CHECK(refusal("GET / HTTP/1.1\r\n Host: a\r\n\r\n") == 400);
  CHECK(refusal(post("Transfer-Encoding: chunked\r\n", "G\r\na\r\n")) == 400);
  CHECK(refusal(post("Transfer-Encoding: chunked\r\n", "1\r\nab\r\n")) == 400);
  CHECK(refusal(post("Transfer-Encoding: chunked\r\n", "11111111111111111\r\n")) == 400);
}

TEST_CASE("methods, targets, versions and hosts are checked") {
  const auto line = [](const std::string& first) { return first + "\r\nHost: a\r\n\r\n"; };
  for (const auto* method : {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}) {
    CHECK(refusal(line(std::string(method) + " / HTTP/1.1")) == 0);
  }
  CHECK(refusal(line("TRACE / HTTP/1.1")) == 405);
  CHECK(refusal(line("CONNECT a:80 HTTP/1.1")) == 405);
  CHECK(refusal(line("PROPFIND / HTTP/1.1")) == 405);
  CHECK(refusal(line("BREW / HTTP/1.1")) == 501);
  CHECK(refusal(line("get / HTTP/1.1")) == 501);
  CHECK(refusal(line("G@T / HTTP/1.1")) == 400);
  CHECK(refusal(line("\x16\x03\x01")) == 400);
  CHECK(refusal(line("GET relative HTTP/1.1")) == 400);
  CHECK(refusal(line("GET /a b HTTP/1.1")) == 400);
  CHECK(refusal(line("GET /\xc3\xa9 HTTP/1.1")) == 400);
  CHECK(refusal(line("GET * HTTP/1.1")) == 400);
  CHECK(refusal(line("OPTIONS * HTTP/1.1")) == 0);
  CHECK(refusal(line("GET / HTTP/1.2")) == 505);
  CHECK(refusal(line("GET / HTTP/3.0")) == 505);
  CHECK(refusal("PRI * HTTP/2.0\r\n\r\n") >= 400);
  CHECK(refusal(line("GET / HTTQ/1.1")) == 400);
  CHECK(refusal(line("GET /")) == 400);
  CHECK(refusal(line("GET / HTTP/1.1 ")) == 400);
  CHECK(refusal("GET / HTTP/1.1\r\n\r\n") == 400);
  CHECK(refusal("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n") == 400);
  CHECK(refusal("GET / HTTP/1.0\r\n\r\n") == 0);
  CHECK(refusal(get("Expect: 200-ok\r\n")) == 417);
  CHECK(refusal(get(std::string("X: a\0b\r\n", 8))) == 400);
}

TEST_CASE("an absolute target is cut to its path") {
  const server_options options;
  request_parser parser(options);
  feed(parser, "GET http://host:80?q=1 HTTP/1.1\r\nHost: host\r\n\r\n");
  REQUIRE(parser.now() == state::complete);
  const auto whole = parser.take();
  CHECK(whole.path == "/");
  CHECK(whole.query == "q=1");
}

TEST_CASE("sizes are bounded exactly") {
  server_options options;
  options.header_bytes_max = 1024;
  options.header_count_max = 4;
  options.body_bytes_max = 10;
  const auto padded = [](std::size_t total) {
    const auto head = get("X: \r\n");
    return get("X: " + std::string(total - head.size(), 'v') + "\r\n");
  };
  CHECK(refusal(padded(1024), options) == 0);
  CHECK(refusal(padded(1025), options) == 431);
  CHECK(refusal("GET /" + std::string(2000, 'a'), options) == 431);
  CHECK(refusal(get("A: 1\r\nB: 2\r\nC: 3\r\n"), options) == 0);
  CHECK(refusal(get("A: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\n"), options) == 431);
  CHECK(refusal(post("Content-Length: 10\r\n", "0123456789"), options) == 0);
  CHECK(refusal(post("Content-Length: 11\r\n"), options) == 413);
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  CHECK(refusal(post(chunked, "5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n"), options) == 0);
  CHECK(refusal(post(chunked, "5\r\n01234\r\n6\r\n567890"), options) == 413);
}

TEST_CASE("whether a connection lives on is the client's word") {
  const auto kept = [](const std::string& bytes) {
    const server_options options;
    request_parser parser(options);
    feed(parser, bytes);
    REQUIRE(parser.now() == state::complete);
    return parser.keep_alive();
  };
  CHECK(kept(get({})));
  CHECK_FALSE(kept(get("Connection: close\r\n")));
  CHECK_FALSE(kept("GET / HTTP/1.0\r\n\r\n"));
  CHECK(kept("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
  CHECK_FALSE(kept(post("Connection: close\r\nContent-Length: 1\r\n", "a")));
}

TEST_CASE("an upgrade that is not taken leaves the body to be read") {
  const server_options options;
  request_parser parser(options);
  feed(parser, post("Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n", "hi"));
  REQUIRE(parser.now() == state::complete);
  CHECK(parser.take().body == "hi");
}
