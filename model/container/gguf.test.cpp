// The GGUF parser: one file byte by byte, typed metadata, and every malformed
// kind refused by name.
#include "model/container/gguf.hpp"

#include <deque>

#include "core/error.hpp"
#include "model/container/gguf_writer.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;
using Catch::Matchers::ContainsSubstring;

namespace {

gguf_file parse(const std::string& bytes) {
  return parse_gguf(as_bytes(bytes), "m.gguf");
}

/// Files hold views, so the bytes are kept for as long as the tests run.
gguf_file parse(const gguf_writer& writer) {
  static std::deque<std::string> kept;
  return parse(kept.emplace_back(writer.file()));
}

void refused(const std::string& bytes, const std::string& message) {
  CHECK_THROWS_AS(parse(bytes), input_error);
  CHECK_THROWS_WITH(parse(bytes), ContainsSubstring("m.gguf: ") && ContainsSubstring(message));
}

template <class Number>
std::string raw(Number value) {
  return gguf_writer::raw(value);
}

/// A file of one key whose value has the given type and bytes.
std::string with_key(std::uint32_t type, const std::string& value) {
  return gguf_writer().key("k", type, value).file();
}

gguf_writer small() {
  gguf_writer w;
  w.text("general.architecture", "llama").u32("llama.block_count", 1);
  w.tensor("output_norm.weight", 0, {4}, std::string(16, '\1'));
  return w;
}

}  // namespace

TEST_CASE("a file written down byte by byte is read") {
  using namespace std::string_literals;
  // magic, version 3, one tensor, two keys; keys end at 69 and 102, the tensor's
  // description at 152, data begin at 160.
  std::string bytes = "GGUF\3\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"s;
  bytes += "\x14\0\0\0\0\0\0\0general.architecture\x08\0\0\0\5\0\0\0\0\0\0\0llama"s;
  REQUIRE(bytes.size() == 69);
  bytes += "\x11\0\0\0\0\0\0\0llama.block_count\4\0\0\0\1\0\0\0"s;
  REQUIRE(bytes.size() == 102);
  bytes += "\x12\0\0\0\0\0\0\0output_norm.weight\1\0\0\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"s;
  REQUIRE(bytes.size() == 152);
  bytes += std::string(8, '\0') + std::string(16, '\7');
  const gguf_file file = parse(bytes);
  CHECK(file.version == 3);
  CHECK(file.data_offset == 160);
  CHECK(file.metadata.text("general.architecture") == "llama");
  CHECK(file.metadata.count("llama.block_count", 100) == 1);
  REQUIRE(file.find("output_norm.weight") != nullptr);
  const gguf_tensor& tensor = *file.find("output_norm.weight");
  CHECK(tensor.type == element_type::f32);
  CHECK(tensor.dims == std::vector<std::int64_t>{4});
  REQUIRE(tensor.bytes.size() == 16);
  CHECK(tensor.bytes.data() == as_bytes(bytes).data() + 160);
  CHECK(file.find("nothing") == nullptr);
  // The test's writer agrees with the bytes above.
  bytes.replace(160, 16, std::string(16, '\1'));
  CHECK(small().file().substr(0, 176) == bytes);
}

TEST_CASE("every type of value is read, version 2 as well") {
  gguf_writer w;
  w.version = 2;
  w.key("u8", 0, raw<std::uint8_t>(255)).key("i8", 1, raw<std::int8_t>(-128));
  w.key("u16", 2, raw<std::uint16_t>(65535)).key("i16", 3, raw<std::int16_t>(-2));
  w.key("u32", 4, raw<std::uint32_t>(7)).key("i32", 5, raw<std::int32_t>(-7));
  w.key("f32", 6, raw(0.5F)).key("bool", 7, raw<std::uint8_t>(1)).text("string", "héllo");
  w.key("u64", 10, raw<std::uint64_t>(1ULL << 63)).key("i64", 11, raw<std::int64_t>(5));
  w.key("f64", 12, raw(0.1)).texts("tokens", {"a", "", "ccc"});
  w.numbers<float>("scores", 6, {1.5F, -2}).numbers<std::int32_t>("kinds", 5, {1, -3});
  w.numbers<std::uint8_t>("flags", 7, {0, 1});
  const gguf_file file = parse(w);
  const gguf_metadata& m = file.metadata;
  CHECK(m.whole("u8", 1000) == 255);
  CHECK(m.whole("u16", 100'000) == 65535);
  CHECK(m.whole("u32", 7) == 7);
  CHECK(m.whole("i64", 7) == 5);
  CHECK(m.number("i8") == -128);
  CHECK(m.number("i16") == -2);
  CHECK(m.number("f32") == 0.5);
  CHECK(m.number("f64") == 0.1);
  CHECK(m.flag_or("bool", false));
  CHECK(m.text("string") == "héllo");
  CHECK(std::get<std::uint64_t>(m.find("u64")->content) == 1ULL << 63);
  CHECK(m.strings("tokens") == std::vector<std::string_view>{"a", "", "ccc"});
  CHECK(m.floats("scores") == std::vector<float>{1.5F, -2});
  CHECK(m.integers("kinds") == std::vector<std::int64_t>{1, -3});
  CHECK(m.flags("flags") == std::vector<bool>{false, true});
}

TEST_CASE("metadata of the wrong kind is refused by key, file and need") {
  gguf_writer w;
  w.text("text", "x").u32("number", 9).f32("nan", std::numeric_limits<float>::quiet_NaN());
  w.texts("texts", {"x"}).key("huge", 10, raw(~0ULL)).key("minus", 5, raw<std::int32_t>(-1));
  w.numbers<std::uint32_t>("unequal", 4, {1, 2}).numbers<std::uint32_t>("equal", 4, {8, 8});
  const gguf_file file = parse(w);
  const gguf_metadata& m = file.metadata;
  CHECK_THROWS_WITH(m.count("none", 9),
                    "m.gguf: metadata key \"none\" is missing (a positive "
                    "whole number is needed)");
  CHECK_THROWS_WITH(m.count("text", 9), ContainsSubstring("is of type string; a whole number"));
  CHECK_THROWS_WITH(m.count("number", 8), ContainsSubstring("is 9; a whole number from 0 to 8"));
  CHECK_THROWS_WITH(m.whole("huge", 8), ContainsSubstring("is 18446744073709551615"));
  CHECK_THROWS_WITH(m.whole("minus", 8), ContainsSubstring("is -1"));
  CHECK_THROWS_WITH(m.text("number"), ContainsSubstring("is 9; a string is needed"));
  CHECK_THROWS_WITH(m.number("text"), ContainsSubstring("a number is needed"));
  CHECK_THROWS_WITH(m.number("nan"), ContainsSubstring("not finite"));
  CHECK_THROWS_WITH(m.flag_or("number", true), ContainsSubstring("a bool is needed"));
  CHECK_THROWS_WITH(m.strings("number"), ContainsSubstring("an array of strings is needed"));
  CHECK_THROWS_WITH(m.floats("texts"), ContainsSubstring("array of string; f32 is needed"));
  CHECK_THROWS_WITH(m.integers("texts"), ContainsSubstring("whole numbers are needed"));
  CHECK_THROWS_WITH(m.count("unequal", 9), ContainsSubstring("differs between layers"));
  CHECK(m.count("equal", 9) == 8);
}

TEST_CASE("a header that is no GGUF of version 2 or 3 is refused") {
  std::string bytes = small().file();
  refused("GGML" + bytes.substr(4), "magic is not \"GGUF\"");
  for (const auto& [version, message] : {std::pair{1U, "version is 1; 2 and 3"},
                                         {4U, "version is 4"},
                                         {0x03000000U, "big-endian"}}) {
    gguf_writer w = small();
    w.version = version;
    refused(w.file(), message);
  }
}

TEST_CASE("counts beyond what the file can hold are refused before anything is allocated") {
  std::string bytes = small().file();
  const auto patched = [&](std::size_t at, std::uint64_t count) {
    std::string copy = bytes;
    return copy.replace(at, 8, raw(count));
  };
  refused(patched(8, ~0ULL), "tensor count is 18446744073709551615");
  refused(patched(8, 1ULL << 40), "tensor count");
  refused(patched(16, 1ULL << 63), "metadata count");
  refused(patched(16, 100), "metadata count is 100");
  refused(with_key(8, raw<std::uint64_t>(1ULL << 62)), "\"k\" needs 4611686018427387904 bytes");
  refused(with_key(9, raw<std::uint32_t>(10) + raw<std::uint64_t>(1ULL << 61)), "array length");
  refused(with_key(9, raw<std::uint32_t>(8) + raw<std::uint64_t>(1'000'000)), "array length");
}

TEST_CASE("malformed keys and values are refused by name") {
  refused(gguf_writer().u32("", 1).file(), "metadata key 0 is empty");
  refused(gguf_writer().u32(std::string(65'536, 'k'), 1).file(), "longer than 65535");
  refused(gguf_writer().u32(std::string_view("a\0b", 3), 1).file(), "control characters");
  refused(gguf_writer().u32("a", 1).u32("a", 2).file(), "metadata key \"a\" occurs twice");
  refused(with_key(13, std::string(8, '\0')), "\"k\" has value type 13");
  refused(with_key(9, raw<std::uint32_t>(99) + raw<std::uint64_t>(0)),
          "\"k\" (array) has value type 99");
  refused(with_key(7, raw<std::uint8_t>(2)), "bool of value 2");
  refused(gguf_writer().numbers<std::uint8_t>("k", 7, {1, 7}).file(), "bool of value 7");
}

TEST_CASE("arrays of arrays are walked to a bounded depth") {
  const auto nested = [](int depth) {
    std::string value;
    for (int i = 1; i < depth; ++i) value += raw<std::uint32_t>(9) + raw<std::uint64_t>(1);
    return with_key(9, value + raw<std::uint32_t>(4) + raw<std::uint64_t>(1) + raw(5U));
  };
  CHECK_NOTHROW(parse(nested(4)));
  refused(nested(5), "deeper than 4");
  std::string wide(12 * 100'000, '\0');
  for (std::size_t i = 0; i < wide.size(); i += 12) wide[i] = 9;
  for (std::size_t i = 4; i < wide.size(); i += 12) wide[i] = 1;
  refused(with_key(9, wide), "deeper than 4");
}

TEST_CASE("an alignment of the wrong type or value is refused") {
  const std::string key = "general.alignment";
  refused(gguf_writer().key(key, 10, raw<std::uint64_t>(32)).file(),
          "has type u64; it must be u32");
  refused(gguf_writer().text(key, "32").file(), "has type string");
  for (const std::uint32_t value : {0U, 3U, 48U}) {
    refused(gguf_writer().u32(key, value).file(), "a power of two is needed");
  }
  gguf_writer w;
  w.alignment = 64;
  w.u32(key, 64).tensor("a", 0, {1}, "1234").tensor("b", 0, {1}, "5678");
  const gguf_file file = parse(w);
  CHECK(file.alignment == 64);
  CHECK(file.data_offset % 64 == 0);
  CHECK(file.find("b")->bytes[0] == std::byte{'5'});
  refused(small().u32(key, 1U << 31).file(), "data section begins");
}

TEST_CASE("malformed tensor descriptions are refused by tensor and field") {
  const auto one = [](std::string_view name, std::uint32_t type, std::vector<std::uint64_t> dims,
                      std::uint64_t offset = 0) {
    return gguf_writer().info(name, type, dims, offset).file() + std::string(256, '\0');
  };
  CHECK_NOTHROW(parse(one("t", 0, {64})));
  refused(one("", 0, {64}), "tensor name 0 is empty");
  refused(one(std::string(64, 'n'), 0, {64}), "longer than 63");
  refused(one("a\nb", 0, {64}), "control characters");
  refused(one("t", 0, {}), "\"t\" has 0 dimensions");
  refused(one("t", 0, {1, 1, 1, 1, 1}), "has 5 dimensions");
  refused(one("t", 0, {4, 0}), "\"t\" dimension 1 is 0");
  refused(one("t", 0, {~0ULL}), "too large");
  refused(one("t", 0, {1ULL << 40, 1ULL << 40}), "product is too large");
  refused(one("t", 28, {1ULL << 61}), "product is too large");
  refused(one("t", 4, {64}), "has type 4, which is not defined");
  refused(one("t", 4000, {64}), "has type 4000");
  refused(one("t", 2, {33}), "dimension 0 is 33, not a multiple of the 32 elements of a Q4_0");
  refused(one("t", 12, {128}), "256 elements of a Q4_K");
  refused(one("t", 0, {4}, 16), "offset is 16, not a multiple of 32");
  refused(one("t", 0, {4}, 256), "offset is 256 and its 16 bytes end beyond");
  refused(one("t", 0, {65}), "its 260 bytes end beyond the data's 256");
  refused(one("t", 0, {4}, ~0ULL - 31), "end beyond");
  gguf_writer twice;
  twice.tensor("t", 0, {1}, "1234").tensor("t", 0, {1}, "1234");
  refused(twice.file(), "tensor \"t\" occurs twice");
  gguf_writer overlap;
  overlap.info("b", 0, {16}, 0).info("a", 0, {4}, 32);
  refused(overlap.file() + std::string(64, '\0'), "tensor \"a\" overlaps tensor \"b\"");
}

TEST_CASE("a tensor of a type that cannot be computed with is still listed") {
  const gguf_file file = parse(gguf_writer().tensor("t", 16, {256}, std::string(66, '\0')));
  CHECK(info(file.find("t")->type).name == "IQ2_XXS");
}

TEST_CASE("a file cut at any byte is refused, never read past its end") {
  gguf_writer w = small();
  w.texts("tokens", {"a", "bc"}).numbers<float>("scores", 6, {1, 2});
  w.tensor("q", 12, {256}, std::string(144, '\2'));
  const std::string whole = w.file();
  REQUIRE_NOTHROW(parse(whole));
  // The last tensor ends 16 bytes before its padding does.
  for (std::size_t size = 0; size + 16 < whole.size(); ++size) {
    const std::vector<char> exact(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK_THROWS_AS(parse_gguf(std::as_bytes(std::span(exact)), "m"), input_error);
  }
}

TEST_CASE("a file with any byte changed parses or is refused") {
  gguf_writer w = small();
  w.texts("tokens", {"a", "bc"}).numbers<float>("scores", 6, {1, 2});
  const std::string whole = w.file();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int change : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xFF}) {
      std::vector<char> copy(whole.begin(), whole.end());
      copy[at] = static_cast<char>(copy[at] ^ change);
      try {
        const gguf_file file = parse_gguf(std::as_bytes(std::span(copy)), "m");
        for (const auto& [key, value] : file.metadata.values()) {
          if (value.type == gguf_type::array) (void)std::get<gguf_array>(value.content).raw.size();
        }
        if (file.metadata.has("tokens")) (void)file.metadata.strings("tokens");
      } catch (const input_error&) {
        continue;
      }
    }
  }
  SUCCEED("no crash and no other exception");
}
