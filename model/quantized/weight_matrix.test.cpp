// Quantized weights against values that other implementations computed
// (bench/reference/make_quantized_fixtures.py), small ones by hand, and parts
// that do not fit together.
#include "model/quantized/weight_matrix.hpp"

#include <map>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "model/quantized/fixture.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Tensors that own their bytes, and the parts of a weight found among them.
struct parts_of_weight {
  std::map<std::string, std::vector<std::byte>> bytes;
  std::map<std::string, stored_tensor> tensors;

  void add(const std::string& name, element_type type, std::vector<std::int64_t> shape,
           std::vector<std::byte> content) {
    bytes[name] = std::move(content);
    tensors[name] = {name, type, std::move(shape), bytes[name]};
  }
  template <class Number>
  void add(const std::string& name, element_type type, std::vector<std::int64_t> shape,
           const std::vector<Number>& numbers) {
    const auto raw = std::as_bytes(std::span(numbers));
    add(name, type, std::move(shape), std::vector<std::byte>(raw.begin(), raw.end()));
  }
  [[nodiscard]] const stored_tensor* find(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (tensors.contains(name)) return &tensors.at(name);
    }
    return nullptr;
  }
  [[nodiscard]] weight_parts parts() const {
    return {find({"qweight", "weight_packed", "weight"}),
            find({"scales", "weight_scale", "weight_scale_inv"}),
            find({"qzeros", "weight_zero_point"}), find({"g_idx", "weight_g_idx"}),
            find({"weight_shape"})};
  }
};

weight_matrix make(const quantization_config& config, const parts_of_weight& weight) {
  if (config.method == quantization_method::awq) return make_awq_matrix(config, weight.parts());
  if (config.method == quantization_method::gptq) return make_gptq_matrix(config, weight.parts());
  if (weight.find({"weight_packed"}) != nullptr) return make_packed_matrix(config, weight.parts());
  return make_scaled_matrix(config, weight.parts());
}

std::vector<float> row(const weight_matrix& matrix, std::int64_t n) {
  std::vector<float> out(static_cast<std::size_t>(columns_of(matrix)));
  dequantize_row(matrix, n, out);
  return out;
}

quantization_config awq(std::int64_t group) {
  quantization_config config;
  config.method = quantization_method::awq;
  config.bits = 4;
  config.scales = scale_layout::group;
  config.group_size = group;
  config.symmetric = false;
  return config;
}

/// 32 inputs, 8 outputs; every word the codes 0..7 in AutoAWQ's order, zero
/// points 8, scales 0.5.
parts_of_weight small_awq() {
  parts_of_weight weight;
  weight.add("qweight", element_type::i32, {32, 1}, std::vector<std::uint32_t>(32, 0x75316420));
  weight.add("qzeros", element_type::i32, {1, 1}, std::vector<std::uint32_t>{0x88888888});
  weight.add("scales", element_type::f16, {1, 8}, std::vector<std::uint16_t>(8, 0x3800));
  return weight;
}

quantization_config gptq(int bits, std::int64_t group, int zero_offset) {
  quantization_config config = awq(group);
  config.method = quantization_method::gptq;
  config.bits = bits;
  config.zero_offset = zero_offset;
  return config;
}

parts_of_weight small_gptq() {
  parts_of_weight weight;
  weight.add("qweight", element_type::i32, {8, 8}, std::vector<std::uint32_t>(64, 0x76543210));
  weight.add("qzeros", element_type::i32, {2, 1}, std::vector<std::uint32_t>(2, 0x77777777));
  weight.add("scales", element_type::f16, {2, 8}, std::vector<std::uint16_t>(16, 0x3400));
  return weight;
}

}  // namespace

TEST_CASE("quantized matrices equal other implementations' values bit for bit") {
  const nlohmann::json fixture = load_fixture("matrices.json");
  REQUIRE(fixture.at("cases").size() == 14);
  for (const auto& entry : fixture.at("cases")) {
    INFO(entry.at("name").get<std::string>());
    parts_of_weight weight;
    for (const auto& [name, tensor] : entry.at("tensors").items()) {
      const auto type = safetensors_element_type(tensor.at("dtype").get<std::string>());
      REQUIRE(type);
      weight.add(name, *type, tensor.at("shape").get<std::vector<std::int64_t>>(),
                 hex_bytes(tensor.at("bytes")));
    }
    const weight_matrix matrix =
        make(parse_quantization_config(entry.at("config"), "config.json"), weight);
    REQUIRE(rows_of(matrix) == entry.at("shape")[0].get<std::int64_t>());
    REQUIRE(columns_of(matrix) == entry.at("shape")[1].get<std::int64_t>());
    const auto expected = hex_floats(entry.at("values"));
    for (std::int64_t n = 0; n < rows_of(matrix); ++n) {
      const auto values = row(matrix, n);
      for (std::size_t k = 0; k < values.size(); ++k) {
        INFO("row " << n << " column " << k);
        CHECK(values[k] == expected[static_cast<std::size_t>(n) * values.size() + k]);
      }
    }
  }
}

TEST_CASE("AWQ words hold their columns in the order 0 2 4 6 1 3 5 7") {
  const parts_of_weight weight = small_awq();
  const weight_matrix matrix = make_awq_matrix(awq(32), weight.parts());
  CHECK(rows_of(matrix) == 8);
  CHECK(columns_of(matrix) == 32);
  for (int n = 0; n < 8; ++n) {
    CHECK(row(matrix, n) == std::vector<float>(32, static_cast<float>(n - 8) * 0.5F));
  }
}

TEST_CASE("GPTQ adds one to stored zero points in its first version only") {
  const auto weight = small_gptq();
  const weight_matrix first = make_gptq_matrix(gptq(4, 32, 1), weight.parts());
  CHECK(columns_of(first) == 64);
  CHECK(row(first, 5)[3] == -1.25F);
  const weight_matrix second = make_gptq_matrix(gptq(4, 32, 0), weight.parts());
  CHECK(row(second, 5)[3] == -1.0F);
}

TEST_CASE("a stored GPTQ zero point of 15 becomes 0 without touching its neighbour") {
  parts_of_weight weight = small_gptq();
  weight.add("qzeros", element_type::i32, {2, 1}, std::vector<std::uint32_t>(2, 0x7777777F));
  const weight_matrix matrix = make_gptq_matrix(gptq(4, 32, 1), weight.parts());
  CHECK(row(matrix, 0)[3] == 0.75F);
  CHECK(row(matrix, 1)[3] == -1.25F);
}

TEST_CASE("GPTQ groups may be given per input, and all zero means in order") {
  parts_of_weight weight = small_gptq();
  weight.add(
      "scales", element_type::f16, {2, 8},
      std::vector<std::uint16_t>{0x3400, 0x3400, 0x3400, 0x3400, 0x3400, 0x3400, 0x3400, 0x3400,
                                 0x3800, 0x3800, 0x3800, 0x3800, 0x3800, 0x3800, 0x3800, 0x3800});
  std::vector<std::int32_t> backwards(64, 1);
  for (std::size_t k = 32; k < 64; ++k) backwards[k] = 0;
  weight.add("g_idx", element_type::i32, {64}, backwards);
  CHECK(row(make_gptq_matrix(gptq(4, 32, 1), weight.parts()), 0)[3] == -2.5F);
  weight.add("g_idx", element_type::i32, {64}, std::vector<std::int32_t>(64, 0));
  const weight_matrix in_order = make_gptq_matrix(gptq(4, 32, 1), weight.parts());
  CHECK(row(in_order, 0)[3] == -1.25F);
  CHECK(row(in_order, 0)[35] == -2.5F);
}

TEST_CASE("group indices outside the groups are refused") {
  parts_of_weight weight = small_gptq();
  for (const std::int32_t bad : {2, -1, 1 << 30}) {
    std::vector<std::int32_t> groups(64, 1);
    groups[9] = bad;
    weight.add("g_idx", element_type::i32, {64}, groups);
    CHECK_THROWS_WITH(make_gptq_matrix(gptq(4, 32, 1), weight.parts()),
                      ContainsSubstring("\"g_idx\" puts input 9 into group"));
  }
}

TEST_CASE("parts that do not fit each other are refused by name") {
  const auto refused = [](const std::string& name, element_type type,
                          std::vector<std::int64_t> shape, const std::string& message) {
    parts_of_weight weight = small_awq();
    weight.add(name, type, std::move(shape), std::vector<std::byte>(256));
    CHECK_THROWS_AS(make_awq_matrix(awq(32), weight.parts()), input_error);
    CHECK_THROWS_WITH(make_awq_matrix(awq(32), weight.parts()), ContainsSubstring(message));
  };
  refused("qweight", element_type::f16, {32, 1}, "\"qweight\" has type F16; I32 is expected");
  refused("qweight", element_type::i32, {32}, "shape [32]; a matrix is expected");
  refused("qweight", element_type::i32, {48, 1}, "48 inputs, which groups of 32 do not divide");
  refused("qzeros", element_type::i32, {2, 1}, "\"qzeros\" has shape [2, 1]; [1, 1] is expected");
  refused("scales", element_type::f16, {1, 4}, "[1, 8] is expected");
  refused("scales", element_type::i32, {1, 8}, "scales are F16, BF16 or F32");
  parts_of_weight bare = small_awq();
  bare.tensors.erase("scales");
  CHECK_THROWS_WITH(make_awq_matrix(awq(32), bare.parts()),
                    ContainsSubstring("\"qweight\" has no scales beside it"));
}

TEST_CASE("a packed shape that does not match its words is refused") {
  const auto config = parse_quantization_config(
      nlohmann::json::parse(R"({"quant_method":"compressed-tensors","format":"pack-quantized",
        "config_groups":{"g":{"weights":{"num_bits":4,"type":"int","strategy":"channel"}}}})"),
      "c");
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{2, 33}, {3, 32}, {2, 24}, {2, 0}, {2, 1LL << 62}, {2, -1}}) {
    parts_of_weight weight;
    weight.add("weight_packed", element_type::i32, {2, 4}, std::vector<std::uint32_t>(8));
    weight.add("weight_scale", element_type::f32, {2, 1}, std::vector<float>(2, 1));
    weight.add("weight_shape", element_type::i64, {2}, shape);
    CHECK_THROWS_WITH(make_packed_matrix(config, weight.parts()),
                      ContainsSubstring("does not fit the packed shape [2, 4]"));
  }
}

TEST_CASE("scales of a number that fits nothing are refused") {
  quantization_config config;
  config.method = quantization_method::fp8;
  parts_of_weight weight;
  weight.add("weight", element_type::f8_e4m3, {4, 8}, std::vector<std::byte>(32));
  weight.add("weight_scale", element_type::f32, {3}, std::vector<float>(3));
  CHECK_THROWS_WITH(make_scaled_matrix(config, weight.parts()),
                    ContainsSubstring("\"weight_scale\" has shape [3]"));
  config.scales = scale_layout::block;
  config.block_rows = config.block_columns = 4;
  weight.add("weight_scale", element_type::f32, {2, 1}, std::vector<float>(2));
  CHECK_THROWS_WITH(make_scaled_matrix(config, weight.parts()),
                    ContainsSubstring("[1, 2] is expected"));
}

TEST_CASE("plain matrices are read row by row, unreadable ones refused by name") {
  const std::vector<float> numbers{1, 2, 3, 4, 5, 6};
  const auto bytes = std::as_bytes(std::span(numbers));
  const weight_matrix matrix = make_block_matrix({"w", element_type::f32, {2, 3}, bytes});
  CHECK(row(matrix, 1) == std::vector<float>{4, 5, 6});
  CHECK_THROWS_WITH(make_block_matrix({"w", element_type::q2_k, {1, 256}, bytes}),
                    ContainsSubstring("\"w\" has type Q2_K, which cannot be computed with"));
  CHECK_THROWS_WITH(make_block_matrix({"w", element_type::f32, {6}, bytes}),
                    ContainsSubstring("a matrix is expected"));
}
