// Offers by the text of RFC 7692 §7.1, good and bad.
#include "web/gateway/net/deflate_offer.hpp"

#include "tests/support/catch.hpp"

using octavo::net::negotiate_deflate;

namespace {

/// The answer to an offer; empty where none is made.
std::string answer(std::string_view offers, bool takeover = false) {
  const auto agreed = negotiate_deflate(offers, takeover);
  return agreed ? agreed->text() : std::string();
}

}  // namespace

TEST_CASE("without takeover both sides are told to forget") {
  const std::string none =
      "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
  CHECK(answer("permessage-deflate") == none);
  CHECK(answer("Permessage-Deflate ; client_max_window_bits") == none);
  CHECK(answer("permessage-deflate; client_max_window_bits=10") ==
        none + "; client_max_window_bits=10");
  CHECK(answer("permessage-deflate; server_max_window_bits=\"9\"") ==
        none + "; server_max_window_bits=9");
}

TEST_CASE("with takeover windows are kept small where the client lets us") {
  CHECK(answer("permessage-deflate", true) == "permessage-deflate; server_max_window_bits=12");
  CHECK(answer("permessage-deflate; client_max_window_bits", true) ==
        "permessage-deflate; server_max_window_bits=12; client_max_window_bits=12");
  CHECK(answer("permessage-deflate; server_no_context_takeover; client_max_window_bits=9", true) ==
        "permessage-deflate; server_no_context_takeover; client_max_window_bits=9");
}

TEST_CASE("the first acceptable offer of several is taken") {
  CHECK(answer("permessage-deflate; server_max_window_bits=8, permessage-deflate", true) ==
        "permessage-deflate; server_max_window_bits=12");
  CHECK(answer("x-webkit-deflate-frame, permessage-deflate; a=\"b, c\", permessage-deflate",
               true) == "permessage-deflate; server_max_window_bits=12");
}

TEST_CASE("offers that RFC 7692 forbids are passed over") {
  for (const auto* offer :
       {"", "deflate", "permessage-deflate-2", "permessage-deflate; unknown",
        "permessage-deflate; server_max_window_bits",
        "permessage-deflate; server_max_window_bits=8",
        "permessage-deflate; server_max_window_bits=16",
        "permessage-deflate; server_max_window_bits=09",
        "permessage-deflate; server_max_window_bits=1a",
        "permessage-deflate; client_max_window_bits=7",
        "permessage-deflate; client_max_window_bits=",
        "permessage-deflate; client_max_window_bits; client_max_window_bits=9",
        "permessage-deflate; server_no_context_takeover=1",
        "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
        "permessage-deflate; \"server_no_context_takeover", "permessage-deflate;"}) {
    CAPTURE(offer);
    CHECK(answer(offer).empty());
  }
}
