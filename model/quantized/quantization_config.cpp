// Reads quantization configurations; see the header.
#include "model/quantized/quantization_config.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "model/json_fields.hpp"

namespace octavo::model {
namespace {

using nlohmann::json;

/// A whole number of one of the given values, under the first key that is there.
std::int64_t one_of(const json_fields& file, const std::vector<std::string>& keys,
                    const std::vector<std::int64_t>& allowed) {
  const auto key =
      std::find_if(keys.begin(), keys.end(), [&](const std::string& k) { return file.has(k); });
  if (key == keys.end()) file.fail(keys.front(), "is missing");
  const json& value = file.at(*key);
  if (value.is_number_integer()) {
    for (const std::int64_t choice : allowed) {
      if (value == choice) return choice;
    }
  }
  std::string list;
  for (const std::int64_t choice : allowed) {
    list += (list.empty() ? "" : ", ") + std::to_string(choice);
  }
  file.fail(*key, "is " + value.dump() + "; supported are " + list);
}

const std::vector<std::int64_t> group_sizes{-1, 32, 64, 128};

quantization_config read_awq(const json_fields& file) {
  quantization_config config;
  config.method = quantization_method::awq;
  config.bits = static_cast<int>(one_of(file, {"bits", "w_bit"}, {4}));
  config.scales = scale_layout::group;
  config.group_size = one_of(file, {"group_size", "q_group_size"}, group_sizes);
  config.symmetric = !file.flag_or("zero_point", true);
  std::string version = file.text_or("version", "gemm");
  std::transform(version.begin(), version.end(), version.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (version != "gemm") {
    file.fail("version", "is \"" + version + "\"; only the gemm packing is supported");
  }
  config.unquantized = file.texts("modules_to_not_convert");
  return config;
}

/// Rules that leave modules unquantized are fine; those that change bits or
/// groups for some modules are not.
void read_dynamic(const json_fields& file, quantization_config& config) {
  if (!file.has("dynamic")) return;
  const json& rules = file.at("dynamic");
  if (!rules.is_object()) file.fail("dynamic", "must be an object");
  for (const auto& [pattern, overrides] : rules.items()) {
    if (pattern.starts_with("-:")) {
      config.unquantized.push_back("re:" + pattern.substr(2));
    } else if (!overrides.empty()) {
      file.fail("dynamic", "gives modules settings of their own (\"" + pattern +
                               "\"), which is not supported");
    }
  }
}

quantization_config read_gptq(const json_fields& file) {
  quantization_config config;
  config.method = quantization_method::gptq;
  config.bits = static_cast<int>(one_of(file, {"bits"}, {4, 8}));
  config.scales = scale_layout::group;
  config.group_size = one_of(file, {"group_size"}, group_sizes);
  config.symmetric = file.flag_or("sym", true);
  config.reordered = file.flag_or("desc_act", false);
  const std::string form = file.text_or("checkpoint_format", file.text_or("format", "gptq"));
  if (form != "gptq" && form != "gptq_v2") {
    file.fail("checkpoint_format", "is \"" + form + "\"; gptq and gptq_v2 are supported");
  }
  if (file.flag_or("is_marlin_format", false)) {
    file.fail("is_marlin_format", "is true; gptq and gptq_v2 packings are supported");
  }
  config.zero_offset = form == "gptq" ? 1 : 0;
  read_dynamic(file, config);
  return config;
}

/// [rows, columns], or the older "128x128".
void read_block(const json_fields& file, const std::string& key, quantization_config& config) {
  const json& value = file.at(key);
  const auto side = [&](const json& number) {
    const bool sound = number.is_number_unsigned() && number.get<std::uint64_t>() >= 1 &&
                       number.get<std::uint64_t>() <= 65'536;
    if (!sound) file.fail(key, "is " + value.dump() + "; [rows, columns] is expected");
    return number.get<std::int64_t>();
  };
  config.scales = scale_layout::block;
  if (value == "128x128") {
    config.block_rows = config.block_columns = 128;
  } else if (value.is_array() && value.size() == 2) {
    config.block_rows = side(value[0]);
    config.block_columns = side(value[1]);
  } else {
    file.fail(key, "is " + value.dump() + "; [rows, columns] is expected");
  }
}

quantization_config read_fp8(const json_fields& file) {
  quantization_config config;
  config.method = quantization_method::fp8;
  config.bits = 8;
  config.floating = true;
  const std::string form = file.text_or("fmt", "e4m3");
  if (form != "e4m3") file.fail("fmt", "is \"" + form + "\"; e4m3 is supported");
  if (file.has("weight_block_size")) read_block(file, "weight_block_size", config);
  config.unquantized =
      file.texts(file.has("ignored_layers") ? "ignored_layers" : "modules_to_not_convert");
  return config;
}

void read_strategy(const json_fields& weights, quantization_config& config) {
  const std::int64_t group =
      weights.has("group_size") && weights.at("group_size").is_number_integer()
          ? one_of(weights, {"group_size"}, {-1, 16, 32, 64, 128, 256})
          : 0;
  const std::string fallback = group == 0 ? "tensor" : (group > 0 ? "group" : "channel");
  const std::string strategy = weights.text_or("strategy", fallback);
  if (strategy == "tensor") {
    config.scales = scale_layout::tensor;
  } else if (strategy == "channel") {
    config.scales = scale_layout::channel;
  } else if (strategy == "group") {
    if (group == 0) weights.fail("group_size", "is missing (the strategy is group)");
    config.scales = scale_layout::group;
    config.group_size = group;
  } else if (strategy == "block") {
    if (!weights.has("block_structure")) weights.fail("block_structure", "is missing");
    read_block(weights, "block_structure", config);
  } else {
    weights.fail("strategy",
                 "is \"" + strategy + "\"; tensor, channel, group and block are supported");
  }
}

/// "group" and its older spellings mean that inputs are reordered at run time.
bool reorders(const json_fields& weights) {
  if (!weights.has("actorder")) return false;
  const json& order = weights.at("actorder");
  if (order.is_boolean()) return order.get<bool>();
  return order == "group" || order == "dynamic";
}

quantization_config read_weights(const json_fields& weights) {
  quantization_config config;
  config.method = quantization_method::compressed_tensors;
  config.floating = weights.text_or("type", "int") == "float";
  const std::vector<std::int64_t> widths =
      config.floating ? std::vector<std::int64_t>{8} : std::vector<std::int64_t>{4, 8};
  config.bits = static_cast<int>(one_of(weights, {"num_bits"}, widths));
  config.symmetric = weights.flag_or("symmetric", true);
  config.reordered = reorders(weights);
  read_strategy(weights, config);
  return config;
}

bool same_scheme(const quantization_config& a, const quantization_config& b) {
  return a.bits == b.bits && a.floating == b.floating && a.scales == b.scales &&
         a.group_size == b.group_size && a.block_rows == b.block_rows &&
         a.block_columns == b.block_columns && a.symmetric == b.symmetric &&
         a.reordered == b.reordered;
}

quantization_config read_compressed(const json_fields& file) {
  const std::string form = file.text_or("format", "");
  if (form != "pack-quantized" && form != "int-quantized" && form != "float-quantized" &&
      form != "naive-quantized") {
    file.fail("format", "is \"" + form +
                            "\"; pack-quantized, int-quantized and float-quantized are supported");
  }
  const json_fields groups = file.inner("config_groups");
  if (groups.object().empty()) file.fail("config_groups", "is empty");
  quantization_config config;
  bool first = true;
  for (const auto& [name, unused] : groups.object().items()) {
    const quantization_config group = read_weights(groups.inner(name).inner("weights"));
    if (!first && !same_scheme(config, group)) {
      file.fail("config_groups",
                "quantizes some modules differently from others, which is not "
                "supported");
    }
    config = group;
    first = false;
  }
  config.unquantized = file.texts("ignore");
  return config;
}

std::string method_of(const json_fields& file) {
  if (file.has("quant_method")) return file.text_or("quant_method", "");
  // Files beside config.json do not name their method; their keys do.
  if (file.has("w_bit") || file.has("zero_point")) return "awq";
  if (file.has("desc_act")) return "gptq";
  file.fail("quant_method", "is missing");
}

}  // namespace

std::string_view to_string(quantization_method method) {
  switch (method) {
    case quantization_method::awq:
      return "AWQ";
    case quantization_method::gptq:
      return "GPTQ";
    case quantization_method::compressed_tensors:
      return "compressed-tensors";
    case quantization_method::fp8:
      return "FP8";
    case quantization_method::none:
      break;
  }
  return "none";
}

std::string quantization_config::describe() const {
  if (method == quantization_method::none) return "none";
  std::string text = std::string(to_string(method)) + ", " + std::to_string(bits) + "-bit " +
                     (floating ? "floats" : "integers");
  switch (scales) {
    case scale_layout::tensor:
      text += ", one scale a tensor";
      break;
    case scale_layout::channel:
      text += ", one scale an output";
      break;
    case scale_layout::group:
      text +=
          group_size < 0 ? ", one scale an output" : ", groups of " + std::to_string(group_size);
      break;
    case scale_layout::block:
      text += ", blocks of " + std::to_string(block_rows) + "x" + std::to_string(block_columns);
      break;
  }
  if (!floating) text += symmetric ? ", symmetric" : ", zero points";
  return text + (reordered ? ", inputs reordered" : "");
}

quantization_config parse_quantization_config(const json& object, const std::string& where) {
  if (!object.is_object()) throw input_error(where + ": a JSON object is expected");
  const json_fields file(object, where);
  const std::string method = method_of(file);
  if (method == "awq") return read_awq(file);
  if (method == "gptq") return read_gptq(file);
  if (method == "compressed-tensors") return read_compressed(file);
  if (method == "fp8") return read_fp8(file);
  file.fail("quant_method",
            "is \"" + method + "\"; awq, gptq, compressed-tensors and fp8 are supported");
}

}  // namespace octavo::model
