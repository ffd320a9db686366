// Number formats of weights and of the KV cache: names, and bits per element.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace octavo::model {

/// How the linear layers' weights are stored. Embeddings, norms, biases and the
/// output head stay 16 bits wide in every format.
enum class weight_format {
  fp16,  ///< fp16 or bf16
  fp8,   ///< 8 bits, one fp32 scale per output channel
  int8,  ///< 8 bits, one fp32 scale per output channel
  int4   ///< AWQ or GPTQ: 4 bits, fp16 scale and 4-bit zero per group of 128
};

/// How keys and values are stored.
enum class kv_dtype {
  fp16,
  fp8,  ///< static scales: no bytes per token for them
  int8  ///< an fp16 scale for each token and head, one for its key and one for its value
};

/// "auto", "none", "fp16", "bf16", "fp8", "int8", "awq", "gptq", … Throws
/// input_error listing what is allowed.
[[nodiscard]] weight_format parse_weight_format(std::string_view name);

/// "auto", "fp16", "bf16", "fp8", "fp8_e4m3", "fp8_e5m2", "int8". Throws
/// input_error listing what is allowed.
[[nodiscard]] kv_dtype parse_kv_dtype(std::string_view name);

[[nodiscard]] std::string to_string(weight_format format);
[[nodiscard]] std::string to_string(kv_dtype dtype);

/// Bytes of one key or value element.
[[nodiscard]] constexpr std::int64_t kv_element_bytes(kv_dtype dtype) {
  return dtype == kv_dtype::fp16 ? 2 : 1;
}

/// Bytes of the scale of one head's key or value.
[[nodiscard]] constexpr std::int64_t kv_scale_bytes(kv_dtype dtype) {
  return dtype == kv_dtype::int8 ? 2 : 0;
}

}  // namespace octavo::model
