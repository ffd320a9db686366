// Names of the number formats.
#include "model/formats.hpp"

#include <array>
#include <utility>

#include "core/error.hpp"

namespace octavo::model {
namespace {

constexpr std::array<std::pair<std::string_view, weight_format>, 14> weight_names{{
    {"fp16", weight_format::fp16},
    {"bf16", weight_format::fp16},
    {"float16", weight_format::fp16},
    {"bfloat16", weight_format::fp16},
    {"auto", weight_format::fp16},
    {"none", weight_format::fp16},
    {"fp8", weight_format::fp8},
    {"int8", weight_format::int8},
    {"w8a8", weight_format::int8},
    {"int4", weight_format::int4},
    {"awq", weight_format::int4},
    {"gptq", weight_format::int4},
    {"awq_marlin", weight_format::int4},
    {"gptq_marlin", weight_format::int4},
}};

constexpr std::array<std::pair<std::string_view, kv_dtype>, 9> kv_names{{
    {"auto", kv_dtype::fp16},
    {"fp16", kv_dtype::fp16},
    {"bf16", kv_dtype::fp16},
    {"float16", kv_dtype::fp16},
    {"bfloat16", kv_dtype::fp16},
    {"fp8", kv_dtype::fp8},
    {"fp8_e4m3", kv_dtype::fp8},
    {"fp8_e5m2", kv_dtype::fp8},
    {"int8", kv_dtype::int8},
}};

template <class Table>
auto find_name(const Table& table, std::string_view name, const std::string& what) {
  std::string allowed;
  for (const auto& [known, value] : table) {
    if (known == name) return value;
    allowed += (allowed.empty() ? "" : ", ") + std::string{known};
  }
  throw input_error("unknown " + what + " \"" + std::string{name} + "\"; allowed: " + allowed);
}

}  // namespace

weight_format parse_weight_format(std::string_view name) {
  return find_name(weight_names, name, "weight format");
}

kv_dtype parse_kv_dtype(std::string_view name) {
  return find_name(kv_names, name, "KV dtype");
}

std::string to_string(weight_format format) {
  switch (format) {
    case weight_format::fp16:
      return "fp16";
    case weight_format::fp8:
      return "fp8";
    case weight_format::int8:
      return "int8";
    case weight_format::int4:
      return "int4";
  }
  return "?";
}

std::string to_string(kv_dtype dtype) {
  switch (dtype) {
    case kv_dtype::fp16:
      return "fp16";
    case kv_dtype::fp8:
      return "fp8";
    case kv_dtype::int8:
      return "int8";
  }
  return "?";
}

}  // namespace octavo::model
