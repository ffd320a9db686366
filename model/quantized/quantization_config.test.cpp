// Quantization configurations as the quantizers write them, and variants that
// are refused by name.
#include "model/quantized/quantization_config.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "tests/support/catch.hpp"

using namespace octavo;
using namespace octavo::model;
using Catch::Matchers::ContainsSubstring;

namespace {

quantization_config parse(const std::string& text) {
  return parse_quantization_config(nlohmann::json::parse(text), "config.json");
}

void refused(const std::string& text, const std::string& message) {
  INFO(text);
  CHECK_THROWS_AS(parse(text), input_error);
  CHECK_THROWS_WITH(parse(text), ContainsSubstring("config.json") && ContainsSubstring(message));
}

std::string compressed(const std::string& format, const std::string& weights) {
  return R"({"quant_method":"compressed-tensors","format":")" + format +
         R"(","ignore":["lm_head"],"config_groups":{"group_0":{"targets":["Linear"],"weights":{)" +
         weights + "}}}}";
}

}  // namespace

TEST_CASE("AWQ configurations are read in both of their spellings") {
  const auto config = parse(R"({"quant_method":"awq","bits":4,"group_size":128,"zero_point":true,
    "version":"gemm","modules_to_not_convert":null})");
  CHECK(config.method == quantization_method::awq);
  CHECK(config.bits == 4);
  CHECK(config.group_size == 128);
  CHECK_FALSE(config.symmetric);
  CHECK(config.describe() == "AWQ, 4-bit integers, groups of 128, zero points");
  const auto older = parse(R"({"w_bit":4,"q_group_size":-1,"zero_point":true,"version":"GEMM"})");
  CHECK(older.group_size == -1);
  refused(R"({"quant_method":"awq","bits":4,"group_size":128,"version":"gemv"})", "\"gemv\"");
  refused(R"({"quant_method":"awq","bits":3,"group_size":128})", "\"bits\" is 3; supported are 4");
  refused(R"({"quant_method":"awq","bits":4,"group_size":48})", "\"group_size\" is 48");
  refused(R"({"quant_method":"awq","bits":4})", "\"group_size\" is missing");
}

TEST_CASE("GPTQ configurations tell the two versions of zero points apart") {
  const std::string common = R"("quant_method":"gptq","bits":4,"group_size":128,"desc_act":true)";
  const auto first = parse("{" + common + R"(,"sym":false})");
  CHECK(first.method == quantization_method::gptq);
  CHECK(first.zero_offset == 1);
  CHECK(first.reordered);
  CHECK_FALSE(first.symmetric);
  CHECK(parse("{" + common + R"(,"checkpoint_format":"gptq_v2"})").zero_offset == 0);
  CHECK(parse(R"({"bits":8,"group_size":-1,"desc_act":false})").bits == 8);
  refused("{" + common + R"(,"checkpoint_format":"marlin"})", "marlin");
  refused("{" + common + R"(,"is_marlin_format":true})", "is_marlin_format");
  refused(R"({"quant_method":"gptq","bits":2,"group_size":128})", "\"bits\" is 2");
  const auto partly = parse("{" + common + R"(,"dynamic":{"-:.*down.*":{}}})");
  CHECK(partly.unquantized == std::vector<std::string>{"re:.*down.*"});
  refused("{" + common + R"(,"dynamic":{"+:.*down.*":{"bits":8}}})", "settings of their own");
}

TEST_CASE("compressed-tensors schemes are read with their defaults") {
  const auto int4 = parse(
      compressed("pack-quantized", R"("num_bits":4,"type":"int","symmetric":true,"strategy":"group",
        "group_size":128,"actorder":"group")"));
  CHECK(int4.scales == scale_layout::group);
  CHECK(int4.group_size == 128);
  CHECK(int4.reordered);
  CHECK(int4.unquantized == std::vector<std::string>{"lm_head"});
  const auto fp8 = parse(compressed("float-quantized", R"("num_bits":8,"type":"float")"));
  CHECK(fp8.floating);
  CHECK(fp8.scales == scale_layout::tensor);
  CHECK(parse(compressed("int-quantized", R"("num_bits":8,"group_size":-1)")).scales ==
        scale_layout::channel);
  const auto block = parse(
      compressed("float-quantized",
                 R"("num_bits":8,"type":"float","strategy":"block","block_structure":[128,64])"));
  CHECK(block.block_rows == 128);
  CHECK(block.block_columns == 64);
  refused(compressed("nvfp4-pack-quantized", R"("num_bits":4)"), "nvfp4-pack-quantized");
  refused(compressed("pack-quantized", R"("num_bits":4,"strategy":"tensor_group")"),
          "tensor_group");
  refused(compressed("pack-quantized", R"("num_bits":4,"strategy":"group")"), "group_size");
  refused(compressed("float-quantized", R"("num_bits":4,"type":"float")"), "num_bits");
  refused(R"({"quant_method":"compressed-tensors","format":"int-quantized"})", "config_groups");
  refused(R"({"quant_method":"compressed-tensors","format":"int-quantized","config_groups":
    {"a":{"weights":{"num_bits":8}},"b":{"weights":{"num_bits":4}}}})",
          "differently from others");
}

TEST_CASE("FP8 configurations of Hugging Face are read, blocks as well") {
  const auto block = parse(R"({"quant_method":"fp8","fmt":"e4m3","weight_block_size":[128,128],
    "modules_to_not_convert":["lm_head"]})");
  CHECK(block.scales == scale_layout::block);
  CHECK(block.block_columns == 128);
  CHECK(block.describe() == "FP8, 8-bit floats, blocks of 128x128");
  CHECK(parse(R"({"quant_method":"fp8","activation_scheme":"static"})").scales ==
        scale_layout::tensor);
  refused(R"({"quant_method":"fp8","fmt":"e5m2"})", "e5m2");
  refused(R"({"quant_method":"fp8","weight_block_size":[0,128]})", "weight_block_size");
  refused(R"({"quant_method":"fp8","weight_block_size":128})", "[rows, columns]");
}

TEST_CASE("unknown methods and shapes of configuration are refused") {
  refused(R"({"quant_method":"bitsandbytes"})", "bitsandbytes");
  refused("{}", "quant_method");
  refused("[]", "a JSON object");
  refused(R"({"quant_method":"awq","bits":"four","group_size":128})", "\"four\"");
}
