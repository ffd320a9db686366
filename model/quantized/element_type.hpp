// How the elements of a stored tensor are coded: plain numbers, or blocks of
// numbers that share a scale. One list for GGUF and safetensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace octavo::model {

/// Names follow the file formats: GGUF block types are lower case with their
/// usual names, safetensors types are spelled out.
enum class element_type : std::uint8_t {
  f32,
  f16,
  bf16,
  f64,
  boolean,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  f8_e4m3,
  f8_e5m2,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  c64,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q8_1,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  q8_k,
  iq2_xxs,
  iq2_xs,
  iq3_xxs,
  iq1_s,
  iq4_nl,
  iq3_s,
  iq2_s,
  iq4_xs,
  iq1_m,
  tq1_0,
  tq2_0,
  mxfp4,
};

struct element_type_info {
  element_type type{};
  /// As files and tools write it: "Q4_K", "BF16".
  std::string_view name;
  /// Elements that share one block; 1 for plain numbers.
  std::int64_t block_elements = 1;
  std::int64_t block_bytes = 0;
};

[[nodiscard]] const element_type_info& info(element_type type);

/// The type that GGUF files number so; nullopt for numbers without a meaning.
[[nodiscard]] std::optional<element_type> gguf_element_type(std::uint32_t number);

/// The type that safetensors headers call so; nullopt for unknown names.
[[nodiscard]] std::optional<element_type> safetensors_element_type(std::string_view name);

/// Bytes of a run of elements, which must be whole blocks.
[[nodiscard]] inline std::int64_t bytes_of(element_type type, std::int64_t elements) {
  return elements / info(type).block_elements * info(type).block_bytes;
}

}  // namespace octavo::model
