// SHA-256 against the examples of FIPS 180-4 and lengths around its blocks.
#include "model/sha256.hpp"

#include <string>

#include "tests/support/catch.hpp"

using octavo::model::sha256;

namespace {

std::string digest(const std::string& text, std::size_t piece) {
  sha256 hash;
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    hash.update(bytes.subspan(at, std::min(piece, bytes.size() - at)));
  }
  return hash.hex_digest();
}

}  // namespace

TEST_CASE("SHA-256 of the standard's examples") {
  CHECK(digest("", 1) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(digest("abc", 1) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 7) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(digest(std::string(1'000'000, 'a'), 1000) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("SHA-256 does not depend on how the bytes come in") {
  for (std::size_t length = 50; length < 130; ++length) {
    const std::string text(length, 'x');
    for (const std::size_t piece : {1, 63, 64, 65}) {
      CHECK(digest(text, piece) == digest(text, length));
    }
  }
}
