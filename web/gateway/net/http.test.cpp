// The rules of RFC 9110 on names, values and lists.
#include "web/gateway/net/http.hpp"

#include "core/error.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::net;

TEST_CASE("header names compare without case and values keep their order") {
  header_list headers{{"Accept", "a"}, {"X", "1"}, {"ACCEPT", "b"}};
  CHECK(headers.find("accept") == "a");
  CHECK(headers.joined("aCCept") == "a, b");
  CHECK(headers.count("Accept") == 2);
  CHECK_FALSE(headers.find("Missing"));
  headers.set("accept", "c");
  CHECK(headers.joined("Accept") == "c");
  CHECK(headers.size() == 2);
}

TEST_CASE("a token is found in a comma-separated list, not within another token") {
  const header_list headers{{"Connection", "keep-alive ,Upgrade"}, {"Connection", "x-close"}};
  CHECK(headers.has_token("connection", "upgrade"));
  CHECK(headers.has_token("Connection", "keep-alive"));
  CHECK_FALSE(headers.has_token("Connection", "close"));
}

TEST_CASE("names are tokens and values have no line breaks") {
  CHECK(is_token("X-Request_Id.1"));
  for (const auto* bad : {"", "a b", "a:b", "a\r", "(a)", "\xc3\xa9"}) CHECK_FALSE(is_token(bad));
  CHECK(is_field_value("text/plain; charset=\"utf-8\"\t\xc3\xa9"));
  for (const std::string bad : {"a\r\nb", "a\nb", "a\rb", "\x7f"}) CHECK_FALSE(is_field_value(bad));
  CHECK_FALSE(is_field_value(std::string("a\0b", 3)));
}

TEST_CASE("headers that cannot be sent are refused by name") {
  using Catch::Matchers::ContainsSubstring;
  CHECK_NOTHROW(validate_response_headers({{"Content-Type", "a/b"}}));
  CHECK_THROWS_WITH(validate_response_headers({{"X-A", "b\r\nX-B: c"}}), ContainsSubstring("X-A"));
  CHECK_THROWS_AS(validate_response_headers({{"X A", "b"}}), input_error);
  CHECK_THROWS_WITH(validate_response_headers({{"content-length", "3"}}),
                    ContainsSubstring("content-length"));
}

TEST_CASE("a head is a status line, fields and an empty line") {
  CHECK(format_head(200, {{"A", "1"}}, {{"Content-Length", "0"}}) ==
        "HTTP/1.1 200 OK\r\nA: 1\r\nContent-Length: 0\r\n\r\n");
  CHECK(format_head(599, {}, {}) == "HTTP/1.1 599 Unknown\r\n\r\n");
}
