// How a Hugging Face checkpoint says that its weights are quantized: AutoAWQ,
// GPTQ, compressed-tensors and HF FP8, read into one structure. Variants that
// cannot be run are refused by name here, before any weight is touched.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::model {

enum class quantization_method { none, awq, gptq, compressed_tensors, fp8 };

[[nodiscard]] std::string_view to_string(quantization_method method);

/// Which weights share a scale.
enum class scale_layout { tensor, channel, group, block };

struct quantization_config {
  quantization_method method = quantization_method::none;
  int bits = 16;
  /// Are codes floats (FP8) rather than integers?
  bool floating = false;
  scale_layout scales = scale_layout::tensor;
  /// Inputs that share a scale where scales is group; -1 = all of them.
  std::int64_t group_size = -1;
  /// Outputs x inputs that share a scale where scales is block.
  std::int64_t block_rows = 0;
  std::int64_t block_columns = 0;
  bool symmetric = true;
  /// GPTQ: what is added to stored zero points, 1 in the first version of the
  /// format and 0 in the second.
  int zero_offset = 0;
  /// Inputs belong to groups in an order of their own (g_idx).
  bool reordered = false;
  /// Modules that stay unquantized: names or "re:" patterns, for people. What
  /// a file holds decides.
  std::vector<std::string> unquantized;

  /// "AWQ, 4 bits, groups of 128".
  [[nodiscard]] std::string describe() const;
};

/// Reads the object under "quantization_config" of config.json, or a whole
/// quantize_config.json (GPTQ) or quant_config.json (AWQ). `where` names it.
/// Throws input_error naming the field.
[[nodiscard]] quantization_config parse_quantization_config(const nlohmann::json& object,
                                                            const std::string& where);

}  // namespace octavo::model
