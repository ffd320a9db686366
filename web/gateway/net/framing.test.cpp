// Frames made by hand, right and wrong, cut in every way.
#include "web/gateway/net/framing.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/raw_client.hpp"

using namespace octavo::net;
using type = frame_event::type;

namespace {

std::string frame(int first_byte, std::string_view payload) {
  return octavo::testing::raw_client::masked_frame(first_byte, payload);
}

/// All events of `bytes`, cut into pieces of `step`, up to the first that ends.
std::vector<frame_event> read(std::string_view bytes, std::size_t step = SIZE_MAX,
                              std::size_t limit = 1000, bool may_compress = false) {
  frame_reader reader(limit, may_compress);
  std::vector<frame_event> events;
  while (!bytes.empty()) {
    auto piece = bytes.substr(0, step);
    bytes.remove_prefix(piece.size());
    while (auto event = reader.next(piece)) {
      events.push_back(*event);
      if (event->what == type::violation || event->what == type::close) return events;
    }
  }
  return events;
}

/// The code with which `bytes` are refused; 0 where they are not.
int refusal(std::string_view bytes, bool may_compress = false) {
  const auto events = read(bytes, SIZE_MAX, 1000, may_compress);
  return !events.empty() && events.back().what == type::violation ? events.back().code : 0;
}

std::string close_frame(int code, const std::string& reason = {}) {
  return frame(0x88, std::string{static_cast<char>(code >> 8), static_cast<char>(code)} + reason);
}

}  // namespace

TEST_CASE("the masked example of RFC 6455 §5.7 is Hello") {
  const std::string bytes("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", 11);
  const auto events = read(bytes);
  REQUIRE(events.size() == 1);
  CHECK(events[0].what == type::text);
  CHECK(events[0].payload == "Hello");
}

TEST_CASE("fragments are joined, with pings between, however bytes are cut") {
  const auto bytes = frame(0x01, "a\xe2\x82") + frame(0x89, "ping") + frame(0x00, "") +
                     frame(0x8a, "") +
                     frame(0x80,
                           "\xac"
                           "b") +
                     frame(0x82, std::string(200, 'c'));
  for (std::size_t step = 1; step <= bytes.size(); ++step) {
    const auto events = read(bytes, step);
    REQUIRE(events.size() == 4);
    CHECK(events[0].what == type::ping);
    CHECK(events[0].payload == "ping");
    CHECK(events[1].what == type::pong);
    CHECK(events[2].what == type::text);
    CHECK(events[2].payload ==
          "a\xe2\x82\xac"
          "b");
    CHECK(events[3].what == type::binary);
    CHECK(events[3].payload == std::string(200, 'c'));
  }
}

TEST_CASE("frames against the protocol are refused with 1002") {
  CHECK(refusal(std::string("\x81\x01"
                            "a",
                            3)) == 1002);
  for (const int opcode : {3, 4, 5, 6, 7, 11, 12, 13, 14, 15}) {
    CHECK(refusal(frame(0x80 | opcode, "")) == 1002);
    CHECK(refusal(frame(0x80 | opcode, "a")) == 1002);
  }
  for (const int bit : {0x40, 0x20, 0x10}) CHECK(refusal(frame(0x81 | bit, "a")) == 1002);
  CHECK(refusal(frame(0x89, std::string(126, 'a'))) == 1002);
  CHECK(refusal(frame(0x09, "a")) == 1002);
  CHECK(refusal(frame(0x80, "a")) == 1002);
  CHECK(refusal(frame(0x01, "a") + frame(0x81, "b")) == 1002);
  CHECK(refusal(std::string("\x82\xfe\x00\x01", 4) + "mask" + "a") == 1002);
  CHECK(refusal(std::string("\x82\xff\x80\0\0\0\0\0\0\0", 10) + "mask") == 1002);
}

TEST_CASE("RSV1 is for the first frame of a message where compression was agreed") {
  CHECK(refusal(frame(0xc1, "a"), true) == 0);
  CHECK(refusal(frame(0x41, "a") + frame(0xc0, "b"), true) == 1002);
  CHECK(refusal(frame(0xc9, "a"), true) == 1002);
  CHECK(refusal(frame(0xa1, "a"), true) == 1002);
  CHECK(read(frame(0xc1, "a"), SIZE_MAX, 10, true).at(0).compressed);
  CHECK_FALSE(read(frame(0x81, "a"), SIZE_MAX, 10, true).at(0).compressed);
}

TEST_CASE("text that is not UTF-8 is refused with 1007 as soon as it shows") {
  for (const auto* bad : {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\x80"}) {
    CHECK(refusal(frame(0x81, bad)) == 1007);
    CHECK(refusal(frame(0x82, bad)) == 0);
  }
  CHECK(refusal(frame(0x81, "\xe2\x82")) == 1007);
  CHECK(refusal(frame(0x01, "\xe2\x82")) == 0);
  CHECK(refusal(frame(0x01, "\xff")) == 1007);
  CHECK(refusal(frame(0x01, "\xe2\x82") + frame(0x80, "")) == 1007);
}

TEST_CASE("messages are bounded, whole or in fragments, with 1009") {
  CHECK(read(frame(0x82, std::string(1000, 'a'))).at(0).payload.size() == 1000);
  CHECK(refusal(frame(0x82, std::string(1001, 'a'))) == 1009);
  CHECK(refusal(frame(0x02, std::string(600, 'a')) + frame(0x80, std::string(400, 'a'))) == 0);
  CHECK(refusal(frame(0x02, std::string(600, 'a')) + frame(0x80, std::string(401, 'a'))) == 1009);
  // The header alone is enough once a byte of the payload is there.
  const std::string huge("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff", 10);
  CHECK(refusal(huge + "mask" + "a") == 1009);
}

TEST_CASE("close frames carry valid codes and UTF-8") {
  for (const int code : {1000, 1001, 1002, 1003, 1007, 1011, 1013, 3000, 4999}) {
    const auto events = read(close_frame(code, "why"));
    REQUIRE(events.size() == 1);
    CHECK(events[0].what == type::close);
    CHECK(events[0].code == code);
    CHECK(events[0].payload == "why");
  }
  CHECK(read(frame(0x88, "")).at(0).code == 1005);
  for (const int code : {0, 999, 1004, 1005, 1006, 1015, 1100, 2999, 5000, 65535}) {
    CHECK(refusal(close_frame(code)) == 1002);
  }
  CHECK(refusal(frame(0x88, "a")) == 1002);
  CHECK(refusal(close_frame(1000, "\xff")) == 1007);
}

TEST_CASE("frames are written in the shortest form, unmasked") {
  const auto written = [](std::size_t size) {
    std::string out;
    append_frame(out, frame_kind::binary, std::string(size, 'a'));
    return out.substr(0, out.size() - size);
  };
  CHECK(written(0) == std::string("\x82\x00", 2));
  CHECK(written(125) == "\x82\x7d");
  CHECK(written(126) == std::string("\x82\x7e\x00\x7e", 4));
  CHECK(written(65535) == "\x82\x7e\xff\xff");
  CHECK(written(65536) == std::string("\x82\x7f\0\0\0\0\0\x01\0\0", 10));
  std::string hello;
  append_frame(hello, frame_kind::text, "Hello");
  CHECK(hello == "\x81\x05Hello");
  std::string compressed;
  append_frame(compressed, frame_kind::text, "x", true);
  CHECK(compressed == "\xc1\x01x");
}

TEST_CASE("a close reason is cut at a character") {
  CHECK(close_payload(1000, "bye") ==
        "\x03\xe8"
        "bye");
  CHECK(close_payload(1005, "bye").empty());
  const auto cut = close_payload(1000, std::string(122, 'a') + "\xc3\xa9");
  CHECK(cut == "\x03\xe8" + std::string(122, 'a'));
}
