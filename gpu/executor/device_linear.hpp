// A linear layer on a device: a weight in the form that one of the products takes,
// whatever form it was stored in, and its bias.
//
// | stored as                                      | on the device       | product    |
// |------------------------------------------------|---------------------|------------|
// | plain numbers, GGUF blocks                     | 16-bit numbers      | dense_gemm |
// | AWQ, GPTQ and compressed-tensors of 4 bits     | lane layout, 4 bits | w4a16      |
// | GPTQ and compressed-tensors of 8 bits, INT8    | lane layout, 8 bits | w8a16      |
// | FP8                                            | lane layout, e4m3   | w8a16      |
// | FP8, on devices that multiply it               | e4m3                | fp8_gemm   |
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "gpu/kernels/dense_gemm/gemm_workspace.hpp"
#include "gpu/kernels/fp8_gemm/fp8_gemm.hpp"
#include "gpu/kernels/w4a16/lane_product.hpp"
#include "gpu/kernels/w4a16/repack.hpp"
#include "gpu/runtime/memory.hpp"
#include "gpu/runtime/stream.hpp"
#include "gpu/types.hpp"
#include "model/quantized/weight_matrix.hpp"

namespace octavo::gpu {

/// What all products of a rank share.
struct product_context {
  dtype type = dtype::float16;  ///< of activations: float16 or bfloat16
  gemm_workspace workspace;
  int multiprocessors = 0;
  bool batch_invariant = false;
  /// Tokens from which weights of the lane layout are written out: lane_path::dense.
  int dense_tokens_min = lane_dense_tokens_min;
  /// For fp8_gemm: activations in 8 bits, and their scales.
  void* fp8_codes = nullptr;
  float* fp8_scales = nullptr;
};

/// How weights are put on a device.
struct weight_options {
  dtype type = dtype::float16;  ///< of plain numbers, scales and activations
  /// Multiply FP8 weights with activations rounded to FP8, which is twice as fast where
  /// the device can (sm_89 on); else they are only stored so.
  bool fp8_products = false;
};

/// A matrix of 16-bit numbers, [rows, columns].
struct device_table {
  device_array<std::uint16_t> values;
  int rows = 0;
  int columns = 0;
};

/// Makes any stored weight, or weights of the same inputs one beneath another, 16-bit
/// numbers of `type`. Rows of zeros follow where `height` is more than their rows.
[[nodiscard]] device_table upload_table(std::span<const model::weight_matrix> stored, dtype type,
                                        stream& on, const parallel_for& parallel,
                                        std::size_t height = 0);

/// Floats as 16-bit numbers of `type`.
[[nodiscard]] device_array<std::uint16_t> upload_numbers(std::span<const float> values, dtype type,
                                                         stream& on);

class device_linear {
 public:
  device_linear() = default;
  /// Repacks and uploads; host memory is free again when it returns, though the device's
  /// is filled only when `on` is synchronized. `bias` may be empty. Throws input_error
  /// naming `name` for a form without a product.
  device_linear(const model::weight_matrix& stored, std::span<const float> bias,
                const weight_options& options, const std::string& name, stream& on,
                const parallel_for& parallel);
  /// Of 16-bit numbers that are on the device already.
  device_linear(device_table table, std::span<const float> bias, dtype type, stream& on);

  [[nodiscard]] int outputs() const { return outputs_; }
  [[nodiscard]] int inputs() const { return inputs_; }
  /// Bytes on the device.
  [[nodiscard]] std::size_t bytes() const;

  /// What products of `tokens` tokens need of the workspace.
  [[nodiscard]] gemm_needs needs(const product_context& with, int tokens) const;
  /// output [tokens, outputs] of `output_type` = activations [tokens, inputs] x weight^T
  /// + bias. Queued; can be captured.
  void multiply(stream& on, const product_context& with, const void* activations, int tokens,
                void* output, dtype output_type) const;

 private:
  /// A repacked weight's arrays.
  struct lanes {
    lane_code code = lane_code::int4;
    device_array<std::byte> codes;
    device_array<std::uint16_t> scales;
    device_array<std::uint8_t> zeros;
    device_array<std::int32_t> order;
    device_array<float> column_scales;
    lane_weights view;
  };

  /// FP8 weights as they are stored.
  struct fp8_weight {
    device_array<std::byte> codes;
    device_array<float> scales;
    fp8_weight_scales mode = fp8_weight_scales::tensor;
  };

  [[nodiscard]] static fp8_weight upload_fp8(const model::scaled_matrix& stored,
                                             fp8_weight_scales mode, stream& on);
  [[nodiscard]] fp8_product product_of(const fp8_weight& of, const product_context& with,
                                       int tokens) const;
  void multiply_fp8(stream& on, const product_context& with, const fp8_weight& of,
                    const void* activations, int tokens, void* output, dtype output_type) const;
  [[nodiscard]] static lanes upload_lanes(const lane_image& image, stream& on);
  [[nodiscard]] lane_product product_of(const lanes& of, const product_context& with,
                                        int tokens) const;

  int outputs_ = 0;
  int inputs_ = 0;
  std::variant<device_table, lanes, fp8_weight> weight_;
  device_array<std::uint16_t> bias_;
};

/// Numbers of tokens up to `tokens_max` whose needs cover those of all of these numbers.
/// Needs do not grow with tokens everywhere: they depend on the path, and on how many
/// tiles of 16 to 64 tokens share the work.
[[nodiscard]] std::vector<int> covering_token_counts(int tokens_max, int dense_tokens_min);

/// The product of a table of 16-bit numbers, as device_linear's.
void multiply_table(stream& on, const product_context& with, const device_table& table,
                    const void* bias, const void* activations, int tokens, void* output,
                    dtype output_type);
[[nodiscard]] gemm_needs table_needs(const product_context& with, const device_table& table,
                                     int tokens, dtype output_type);

}  // namespace octavo::gpu
