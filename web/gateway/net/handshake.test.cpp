// The handshake of RFC 6455 §1.3 and what is wrong with others.
#include "web/gateway/net/handshake.hpp"

#include "core/error.hpp"
#include "tests/support/catch.hpp"
#include "web/gateway/net/server.hpp"
#include "web/gateway/net/tls.hpp"

using namespace octavo::net;

namespace {

/// The client's handshake of RFC 6455 §1.3, with some headers replaced.
request sample(const header_list& changes = {}) {
  request asked;
  asked.method = "GET";
  asked.headers = {{"Upgrade", "websocket"},
                   {"Connection", "Upgrade"},
                   {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="},
                   {"Sec-WebSocket-Protocol", "chat, superchat"},
                   {"Sec-WebSocket-Version", "13"}};
  for (const auto& [name, value] : changes) asked.headers.set(name, value);
  return asked;
}

}  // namespace

TEST_CASE("the handshake of RFC 6455 §1.3 is answered as there") {
  const auto asked = sample();
  CHECK(is_websocket_upgrade(asked));
  CHECK_FALSE(handshake_objection(asked));
  CHECK(handshake_answer(asked, {}, "chat", {}) ==
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
        "Sec-WebSocket-Protocol: chat\r\n\r\n");
}

TEST_CASE("handshakes that are not for us are refused") {
  CHECK_FALSE(is_websocket_upgrade(sample({{"Upgrade", "h2c"}})));
  CHECK_FALSE(is_websocket_upgrade(sample({{"Connection", "keep-alive"}})));
  CHECK(is_websocket_upgrade(sample({{"Connection", "keep-alive, upgrade"}})));
  const auto status = [](const request& asked) {
    const auto objection = handshake_objection(asked);
    return objection ? objection->status : 0;
  };
  CHECK(status(sample({{"Sec-WebSocket-Version", "8"}})) == 426);
  for (const auto* key : {"", "short", "dGhlIHNhbXBsZSBub25jZQ=", "dGhlIHNhbXBsZSBub25jZ!==",
                          "AAAAAAAAAAAAAAAAAAAAAAAA"}) {
    CHECK(status(sample({{"Sec-WebSocket-Key", key}})) == 400);
  }
  auto posted = sample();
  posted.method = "POST";
  CHECK(status(posted) == 400);
  auto old = sample();
  old.version_minor = 0;
  CHECK(status(old) == 400);
}

TEST_CASE("only an offered subprotocol can be chosen") {
  CHECK(offered_subprotocols(sample()) == std::vector<std::string>{"chat", "superchat"});
  CHECK(offered_subprotocols(sample({{"Sec-WebSocket-Protocol", " , a b,c"}})) ==
        std::vector<std::string>{"c"});
  CHECK_THROWS_AS(handshake_answer(sample(), {}, "other", {}), octavo::input_error);
}
