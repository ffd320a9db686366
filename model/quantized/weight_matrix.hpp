// A linear layer's weight as stored, in any supported form, with the one thing
// all forms can do: give a row as floats. Row n holds the weights from every
// input to output n, whatever the storage order.
//
//   weight_matrix w = make_awq_matrix(config, {.weight = &qweight, .scales = &scales, …});
//   std::vector<float> row(columns_of(w));
//   dequantize_row(w, n, row);
//
// The fields are public: kernels repack from them. The make functions check
// every shape, type and index, so that nothing has to be checked later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "model/quantized/quantization_config.hpp"
#include "model/quantized/stored_tensor.hpp"

namespace octavo::model {

/// Scales: F16, BF16 or F32 numbers of any alignment.
struct scale_array {
  element_type type = element_type::f32;
  std::span<const std::byte> bytes;

  [[nodiscard]] float at(std::int64_t i) const;
};

/// Plain numbers or GGUF blocks, [rows, columns].
struct block_matrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  element_type type{};
  std::span<const std::byte> bytes;
};

/// AutoAWQ, gemm packing: w[n][k] = (q - z) * s, with 4-bit q and z.
struct awq_matrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  /// Inputs that share a scale.
  std::int64_t group = 0;
  std::span<const std::byte> codes;  ///< I32 [columns, rows / 8]
  std::span<const std::byte> zeros;  ///< I32 [columns / group, rows / 8]; empty: 8 everywhere
  scale_array scales;                ///< [columns / group, rows]
};

/// GPTQ: w[n][k] = (q - z) * s of the group of k, z = (stored + zero_offset)
/// modulo 2^bits.
struct gptq_matrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  int bits = 4;
  std::int64_t group = 0;
  int zero_offset = 1;
  std::span<const std::byte> codes;   ///< I32 [columns * bits / 32, rows]
  std::span<const std::byte> zeros;   ///< I32 [groups, rows * bits / 32]
  scale_array scales;                 ///< [groups, rows]
  std::span<const std::byte> groups;  ///< I32 [columns], the group of each input; empty: k / group
};

/// compressed-tensors pack-quantized: w[n][k] = (u - z) * s, codes u offset by
/// half their range.
struct packed_matrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  int bits = 4;
  std::int64_t group = 0;
  std::span<const std::byte> codes;   ///< I32 [rows, ceil(columns * bits / 32)]
  std::span<const std::byte> zeros;   ///< I32 [ceil(rows * bits / 32), groups]; empty: the middle
  scale_array scales;                 ///< [rows, groups]
  std::span<const std::byte> groups;  ///< I32 [columns]; empty: k / group
};

/// One byte a weight (I8 or F8_E4M3) times the scale of its block: the whole
/// tensor, a row, or a rectangle.
struct scaled_matrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  element_type type{};
  std::span<const std::byte> codes;  ///< [rows, columns]
  std::int64_t block_rows = 0;
  std::int64_t block_columns = 0;
  scale_array scales;  ///< [ceil(rows / block_rows), ceil(columns / block_columns)]
};

using weight_matrix =
    std::variant<block_matrix, awq_matrix, gptq_matrix, packed_matrix, scaled_matrix>;

/// The tensors that make up one quantized weight; absent ones are nullptr.
struct weight_parts {
  const stored_tensor* weight = nullptr;
  const stored_tensor* scales = nullptr;
  const stored_tensor* zeros = nullptr;
  const stored_tensor* groups = nullptr;
  /// compressed-tensors: I64 [2], rows and columns.
  const stored_tensor* shape = nullptr;
};

/// Each throws input_error naming the tensor whose type, shape or contents do
/// not fit the configuration.
[[nodiscard]] weight_matrix make_block_matrix(const stored_tensor& weight);
[[nodiscard]] weight_matrix make_awq_matrix(const quantization_config& config,
                                            const weight_parts& parts);
[[nodiscard]] weight_matrix make_gptq_matrix(const quantization_config& config,
                                             const weight_parts& parts);
[[nodiscard]] weight_matrix make_packed_matrix(const quantization_config& config,
                                               const weight_parts& parts);
[[nodiscard]] weight_matrix make_scaled_matrix(const quantization_config& config,
                                               const weight_parts& parts);

/// Outputs and inputs of the layer.
[[nodiscard]] std::int64_t rows_of(const weight_matrix& matrix);
[[nodiscard]] std::int64_t columns_of(const weight_matrix& matrix);

/// Writes row `row` (0 .. rows - 1) to `out`, which has columns_of elements.
void dequantize_row(const weight_matrix& matrix, std::int64_t row, std::span<float> out);

}  // namespace octavo::model
