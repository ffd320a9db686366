// The safetensors parser: a file worked out by hand, and every malformed kind.
#include "model/container/safetensors.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "model/container/gguf_writer.hpp"
#include "model/container/safetensors_writer.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;
using Catch::Matchers::ContainsSubstring;

namespace {

std::vector<stored_tensor> parse(const std::string& bytes) {
  return parse_safetensors(as_bytes(bytes), "m.safetensors");
}

void refused(const std::string& bytes, const std::string& message) {
  INFO(message);
  CHECK_THROWS_AS(parse(bytes), input_error);
  CHECK_THROWS_WITH(parse(bytes), ContainsSubstring("m.safetensors") && ContainsSubstring(message));
}

const std::string two_tensors = R"({"a":{"dtype":"F16","shape":[2,3],"data_offsets":[0,12]},)"
                                R"("b":{"dtype":"I32","shape":[],"data_offsets":[12,16]}})";

/// One tensor's fields in front of 16 bytes.
std::string one(const std::string& fields, std::size_t data_bytes = 16) {
  return safetensors_file(R"({"t":{)" + fields + "}}", std::string(data_bytes, '\0'));
}

}  // namespace

TEST_CASE("a file worked out by hand is read") {
  REQUIRE(two_tensors.size() == 111);
  const std::string file = safetensors_file(two_tensors + " ", "0123456789abcdef");
  REQUIRE(file.size() == 136);
  const auto tensors = parse(file);
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[0].name == "a");
  CHECK(tensors[0].type == element_type::f16);
  CHECK(tensors[0].shape == std::vector<std::int64_t>{2, 3});
  CHECK(tensors[0].bytes.size() == 12);
  CHECK(tensors[1].type == element_type::i32);
  CHECK(tensors[1].shape.empty());
  CHECK(tensors[1].elements() == 1);
  CHECK(tensors[1].bytes.data() == as_bytes(file).data() + 132);
}

TEST_CASE("empty tensors, metadata and any order of entries are fine") {
  const std::string file = safetensors_file(
      R"({"z":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"__metadata__":{"format":"pt"},)"
      R"("e":{"dtype":"F32","shape":[0,4],"data_offsets":[2,2]},)"
      R"("a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[2,3]}})",
      "xyz");
  const auto tensors = parse(file);
  REQUIRE(tensors.size() == 3);
  CHECK(tensors[0].name == "z");
  CHECK(tensors[1].name == "e");
  CHECK(tensors[2].bytes[0] == std::byte{'z'});
  CHECK(parse(safetensors_file("{}", "")).empty());
}

TEST_CASE("headers that do not fit the file are refused") {
  refused("1234567", "has 7 bytes");
  refused(std::string(8, '\0'), "header length is 0");
  refused(std::string(8, '\xFF') + "{}", "header length is 18446744073709551615");
  refused(safetensors_file("{}", "").substr(0, 9), "header length is 2");
  std::string huge = safetensors_file("{}", "");
  const std::uint64_t length = 100'000'001;
  std::memcpy(huge.data(), &length, 8);
  refused(huge, "header length is 100000001");
  refused(safetensors_file("[]", ""), "does not begin with {");
  refused(safetensors_file("{]", ""), "not valid JSON");
  refused(safetensors_file("{} {}", ""), "not valid JSON");
  refused(safetensors_file(R"({"a":{"dtype":[[[1]]]}})", ""), "nested deeper");
}

TEST_CASE("malformed entries are refused by tensor and field") {
  const std::string offsets = R"(,"data_offsets":[0,16])";
  CHECK_NOTHROW(parse(one(R"("dtype":"F32","shape":[4])" + offsets)));
  refused(one(R"("dtype":"Q4","shape":[4])" + offsets), "\"t\" field \"dtype\" is \"Q4\"");
  refused(one(R"("dtype":7,"shape":[4])" + offsets), "\"dtype\" is 7");
  refused(one(R"("dtype":"Q4_0","shape":[4])" + offsets), "\"dtype\" is \"Q4_0\"");
  refused(one(R"("shape":[4])" + offsets), "has no field \"dtype\"");
  refused(one(R"("dtype":"F32")" + offsets), "has no field \"shape\"");
  refused(one(R"("dtype":"F32","shape":[4])"), "has no field \"data_offsets\"");
  refused(one(R"("dtype":"F32","shape":[4],"x":1)" + offsets), "unknown field \"x\"");
  refused(one(R"("dtype":"F32","dtype":"F32","shape":[4])" + offsets), "\"dtype\" occurs twice");
  refused(one(R"("dtype":"F32","shape":4)" + offsets), "\"shape\" must be a list");
  refused(one(R"("dtype":"F32","shape":[-4])" + offsets), "\"shape\" holds -4");
  refused(one(R"("dtype":"F32","shape":[4.0])" + offsets), "\"shape\" holds 4.0");
  refused(one(R"("dtype":"F32","shape":[9007199254740992])" + offsets), "\"shape\" holds");
  refused(one(R"("dtype":"F32","shape":[1099511627776,1099511627776])" + offsets), "too large");
  refused(one(R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,4])" + offsets), "has 9 dimensions");
  refused(one(R"("dtype":"F32","shape":[3])" + offsets), "takes 12 bytes");
  refused(one(R"("dtype":"F32","shape":[4],"data_offsets":[16,0])"), "data_offsets");
  refused(one(R"("dtype":"F32","shape":[4],"data_offsets":[0,16,32])"), "[begin, end]");
  refused(safetensors_file(R"({"":{}})", ""), "tensor name of 0 bytes");
  refused(safetensors_file(R"({"t":7})", ""), "\"t\" must be an object");
  refused(safetensors_file(R"({"__metadata__":{"a":1}})", ""), "__metadata__");
  const std::string t = R"("t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  refused(safetensors_file("{" + t + "," + t + "}", "x"), "\"t\" occurs twice");
}

TEST_CASE("data with holes, overlaps, a rest or a missing end are refused") {
  const auto pair = [](int begin, int end) {
    return safetensors_file(
        R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],)"
        R"("data_offsets":[)" +
            std::to_string(begin) + "," + std::to_string(end) + "]}}",
        std::string(8, '\0'));
  };
  CHECK_NOTHROW(parse(pair(4, 8)));
  refused(pair(5, 9), "\"b\" begins at byte 5 of the data; the one before ends at 4");
  refused(pair(3, 7), "\"b\" begins at byte 3 of the data; it overlaps the one before");
  refused(pair(0, 4), "overlaps");
  const std::string whole = pair(4, 8);
  refused(whole + "x", "describes 8 bytes of data, and the file has 9");
  refused(whole.substr(0, whole.size() - 1), "and the file has 7: it is cut short");
}

TEST_CASE("a safetensors file cut at any byte is refused") {
  const std::string whole = safetensors_file(two_tensors, "0123456789abcdef");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::vector<char> exact(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK_THROWS_AS(parse_safetensors(std::as_bytes(std::span(exact)), "m"), input_error);
  }
}

TEST_CASE("a safetensors file with any byte changed parses or is refused") {
  const std::string whole = safetensors_file(two_tensors, "0123456789abcdef");
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int change = 1; change < 256; ++change) {
      std::vector<char> copy(whole.begin(), whole.end());
      copy[at] = static_cast<char>(copy[at] ^ change);
      try {
        for (const auto& tensor : parse_safetensors(std::as_bytes(std::span(copy)), "m")) {
          REQUIRE(static_cast<std::int64_t>(tensor.bytes.size()) ==
                  bytes_of(tensor.type, tensor.elements()));
        }
      } catch (const input_error&) {
        continue;
      }
    }
  }
}

TEST_CASE("an index of shards gives plain file names only") {
  const auto shards = parse_shard_index(
      R"({"metadata":{"total_size":16},"weight_map":{"a":"m-00001-of-00002.safetensors"}})", "i");
  CHECK(shards.at("a") == "m-00001-of-00002.safetensors");
  for (const std::string name : {"../a", "/a", "a/b", "a\\\\b", "..", ""}) {
    CHECK_THROWS_WITH(parse_shard_index(R"({"weight_map":{"a":")" + name + "\"}}", "i"),
                      ContainsSubstring("i: tensor \"a\" lies in"));
  }
  CHECK_THROWS_AS(parse_shard_index(R"({"weight_map":{"a":1}})", "i"), input_error);
  CHECK_THROWS_WITH(parse_shard_index("{}", "i"), ContainsSubstring("weight_map"));
  CHECK_THROWS_WITH(parse_shard_index("[]", "i"), ContainsSubstring("weight_map"));
  CHECK_THROWS_WITH(parse_shard_index(R"({"weight_map":{"a":"x","a":"y"}})", "i"),
                    ContainsSubstring("\"a\" occurs twice"));
}
