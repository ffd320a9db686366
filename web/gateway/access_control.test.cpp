// Keys, origins and shares, each against what its header promises.
#include "web/gateway/access_control.hpp"

#include <string>

#include "tests/support/catch.hpp"
#include "web/gateway/api/api_error.hpp"

using namespace octavo;
using namespace octavo::gateway;

namespace {

net::request asked(net::header_list headers) {
  net::request r;
  r.method = "POST";
  r.headers = std::move(headers);
  r.remote_address = "192.0.2.1:4711";
  return r;
}

int status_of(const access_control& door, const net::request& request) {
  try {
    static_cast<void>(door.client_of(request));
    return 200;
  } catch (const api::api_error& why) {
    return why.status;
  }
}

}  // namespace

TEST_CASE("texts are equal only where every character is") {
  CHECK(equal_in_constant_time("", ""));
  CHECK(equal_in_constant_time("secret", "secret"));
  CHECK_FALSE(equal_in_constant_time("secret", "secreT"));
  CHECK_FALSE(equal_in_constant_time("secret", "secretsecret"));
  CHECK_FALSE(equal_in_constant_time("", "s"));
  CHECK_FALSE(equal_in_constant_time("s", ""));
}

TEST_CASE("a key is taken from a bearer token, a header or a browser's subprotocol") {
  const access_control door{{"one", "two"}, {}, 0};
  CHECK(status_of(door, asked({})) == 401);
  CHECK(status_of(door, asked({{"Authorization", "Bearer two"}})) == 200);
  CHECK(status_of(door, asked({{"authorization", "bearer  one "}})) == 200);
  CHECK(status_of(door, asked({{"Authorization", "Bearer three"}})) == 401);
  CHECK(status_of(door, asked({{"Authorization", "Basic one"}})) == 401);
  CHECK(status_of(door, asked({{"X-Api-Key", "one"}})) == 200);
  CHECK(status_of(door, asked({{"Sec-WebSocket-Protocol",
                                "octavo, openai-insecure-api-key.two"}})) == 200);
}

TEST_CASE("an empty key lets nobody in") {
  const access_control door{{"one", ""}, {}, 0};
  CHECK(status_of(door, asked({})) == 401);
  CHECK(status_of(door, asked({{"X-Api-Key", ""}})) == 401);
  CHECK(status_of(door, asked({{"X-Api-Key", "one"}})) == 200);
}

TEST_CASE("without keys a client is known by its address") {
  const access_control door{{}, {}, 0};
  CHECK(door.client_of(asked({})) == "192.0.2.1");
}

TEST_CASE("pages of other hosts are let in only by name") {
  const access_control closed{{}, {}, 0};
  CHECK(closed.origin_allowed(asked({})));
  CHECK(closed.origin_allowed(asked({{"Origin", "http://h:8000"}, {"Host", "h:8000"}})));
  CHECK_FALSE(closed.origin_allowed(asked({{"Origin", "http://evil"}, {"Host", "h:8000"}})));
  const access_control open{{}, {"https://app.example"}, 0};
  const auto request = asked({{"Origin", "https://app.example"}, {"Host", "h"}});
  CHECK(open.origin_allowed(request));
  net::header_list headers;
  open.add_cors(request, headers);
  CHECK(headers.find("Access-Control-Allow-Origin") == "https://app.example");
  net::header_list none;
  open.add_cors(asked({{"Origin", "http://evil"}}), none);
  CHECK(none.empty());
}

TEST_CASE("a client's share is given back when its requests end") {
  access_control door{{}, {}, 2};
  door.enter("a");
  door.enter("a");
  door.enter("b");
  CHECK_THROWS_AS(door.enter("a"), api::api_error);
  door.leave("a");
  CHECK_NOTHROW(door.enter("a"));
}
