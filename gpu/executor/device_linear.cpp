// Linear layers on a device: see device_linear.hpp.
#include "gpu/executor/device_linear.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "gpu/kernels/dense_gemm/dense_gemm.hpp"
#include "gpu/kernels/w4a16/w4a16.hpp"
#include "gpu/kernels/w8a16/w8a16.hpp"
#include "model/quantized/scalar.hpp"

namespace octavo::gpu {
namespace {

/// Rows that a thread converts at a time.
constexpr std::size_t rows_per_chunk = 64;

std::uint16_t number_of(float value, dtype type) {
  return type == dtype::bfloat16 ? model::float_to_bfloat(value) : model::float_to_half(value);
}

template <class T>
device_array<T> upload(std::span<const T> values, stream& on) {
  device_array<T> array(values.size());
  if (!values.empty()) array.upload(on, values);
  return array;
}

/// The scales that fp8_gemm knows; nothing for others.
std::optional<fp8_weight_scales> fp8_mode(const model::weight_matrix& stored) {
  const auto* m = std::get_if<model::scaled_matrix>(&stored);
  if (m == nullptr || m->type != model::element_type::f8_e4m3 || m->columns % 16 != 0) return {};
  if (m->block_columns >= m->columns) return fp8_weight_scales::channel;
  const bool blocks = m->block_rows == fp8_block && m->block_columns == fp8_block;
  return blocks ? std::optional{fp8_weight_scales::block} : std::nullopt;
}

dense_product product_of(const product_context& with, const device_table& table, int tokens,
                         dtype output_type) {
  dense_product p;
  p.weights = table.values.data();
  p.tokens = tokens;
  p.outputs = table.rows;
  p.inputs = table.columns;
  p.type = with.type;
  p.output_type = output_type;
  p.workspace = with.workspace;
  p.multiprocessors = with.multiprocessors;
  p.batch_invariant = with.batch_invariant;
  return p;
}

}  // namespace

device_table upload_table(std::span<const model::weight_matrix> stored, dtype type, stream& on,
                          const parallel_for& parallel, std::size_t height) {
  const auto columns = static_cast<std::size_t>(model::columns_of(stored.front()));
  std::size_t rows = 0;
  for (const auto& part : stored) rows += static_cast<std::size_t>(model::rows_of(part));
  height = std::max(height, rows);
  std::vector<std::uint16_t> numbers(height * columns);
  std::uint16_t* to = numbers.data();
  for (const auto& part : stored) {
    const auto part_rows = static_cast<std::size_t>(model::rows_of(part));
    parallel((part_rows + rows_per_chunk - 1) / rows_per_chunk, [&](std::size_t chunk) {
      std::vector<float> row(columns);
      const std::size_t end = std::min(part_rows, (chunk + 1) * rows_per_chunk);
      for (std::size_t n = chunk * rows_per_chunk; n < end; ++n) {
        model::dequantize_row(part, static_cast<std::int64_t>(n), row);
        std::ranges::transform(row, to + n * columns,
                               [&](float value) { return number_of(value, type); });
      }
    });
    to += part_rows * columns;
  }
  return {upload<std::uint16_t>(numbers, on), static_cast<int>(height), static_cast<int>(columns)};
}

device_array<std::uint16_t> upload_numbers(std::span<const float> values, dtype type, stream& on) {
  std::vector<std::uint16_t> numbers(values.size());
  std::ranges::transform(values, numbers.begin(), [&](float v) { return number_of(v, type); });
  return upload<std::uint16_t>(numbers, on);
}

device_linear::device_linear(const model::weight_matrix& stored, std::span<const float> bias,
                             const weight_options& options, const std::string& name, stream& on,
                             const parallel_for& parallel)
    : outputs_(static_cast<int>(model::rows_of(stored))),
      inputs_(static_cast<int>(model::columns_of(stored))),
      bias_(upload_numbers(bias, options.type, on)) {
  const auto mode = options.fp8_products ? fp8_mode(stored) : std::nullopt;
  if (std::holds_alternative<model::block_matrix>(stored)) {
    weight_ = upload_table({&stored, 1}, options.type, on, parallel);
  } else if (mode) {
    weight_ = upload_fp8(std::get<model::scaled_matrix>(stored), *mode, on);
  } else {
    weight_ = upload_lanes(repack(stored, options.type, name, parallel), on);
  }
}

device_linear::device_linear(device_table table, std::span<const float> bias, dtype type,
                             stream& on)
    : outputs_(table.rows),
      inputs_(table.columns),
      weight_(std::move(table)),
      bias_(upload_numbers(bias, type, on)) {}

device_linear::fp8_weight device_linear::upload_fp8(const model::scaled_matrix& stored,
                                                    fp8_weight_scales mode, stream& on) {
  const auto pieces = [](std::int64_t of, std::int64_t size) { return (of + size - 1) / size; };
  // Scales of whole rows are spread out, one a tensor too: activations have one a token, and
  // the library takes scales of rows for both or for none.
  const bool rows = mode == fp8_weight_scales::channel;
  const std::int64_t count =
      rows ? stored.rows
           : pieces(stored.rows, stored.block_rows) * pieces(stored.columns, stored.block_columns);
  std::vector<float> scales;
  for (std::int64_t i = 0; i < count; ++i) {
    scales.push_back(stored.scales.at(rows ? i / stored.block_rows : i));
  }
  return {upload<std::byte>(stored.codes, on), upload<float>(scales, on), mode};
}

fp8_product device_linear::product_of(const fp8_weight& of, const product_context& with,
                                      int tokens) const {
  fp8_product p;
  p.activations = with.fp8_codes;
  p.activation_scales = with.fp8_scales;
  p.activation_mode = of.mode == fp8_weight_scales::block ? fp8_activation_scales::token_block
                                                          : fp8_activation_scales::token;
  p.weights = of.codes.data();
  p.weight_scales = of.scales.data();
  p.weight_mode = of.mode;
  p.bias = bias_.data();
  p.tokens = tokens;
  p.outputs = outputs_;
  p.inputs = inputs_;
  p.type = with.type;
  p.output_type = with.type;
  p.workspace = with.workspace;
  p.multiprocessors = with.multiprocessors;
  p.batch_invariant = with.batch_invariant;
  return p;
}

void device_linear::multiply_fp8(stream& on, const product_context& with, const fp8_weight& of,
                                 const void* activations, int tokens, void* output,
                                 dtype output_type) const {
  fp8_product p = product_of(of, with, tokens);
  fp8_quantization q;
  q.values = activations;
  q.codes = with.fp8_codes;
  q.scales = with.fp8_scales;
  q.tokens = tokens;
  q.inputs = inputs_;
  q.type = with.type;
  q.mode = p.activation_mode;
  fp8_quantize(on, q);
  p.output = output;
  p.output_type = output_type;
  fp8_gemm(on, p);
}

device_linear::lanes device_linear::upload_lanes(const lane_image& image, stream& on) {
  lanes to;
  to.code = image.code;
  to.codes = upload<std::byte>(image.codes, on);
  to.scales = upload<std::uint16_t>(image.scales, on);
  to.zeros = upload<std::uint8_t>(image.zeros, on);
  to.order = upload<std::int32_t>(image.order, on);
  to.column_scales = upload<float>(image.column_scales, on);
  to.view.codes = to.codes.data();
  to.view.scales = to.scales.data();
  to.view.zeros = to.zeros.data();
  to.view.order = to.order.data();
  to.view.column_scales = to.column_scales.data();
  to.view.column_scale_stride = image.column_scales.size() > 1 ? 1 : 0;
  to.view.outputs = static_cast<int>(image.outputs);
  to.view.inputs = static_cast<int>(image.inputs);
  to.view.source_inputs = static_cast<int>(image.source_inputs);
  to.view.group = static_cast<int>(image.group);
  return to;
}

std::size_t device_linear::bytes() const {
  if (const auto* table = std::get_if<device_table>(&weight_)) {
    return table->values.bytes() + bias_.bytes();
  }
  if (const auto* fp8 = std::get_if<fp8_weight>(&weight_)) {
    return fp8->codes.bytes() + fp8->scales.bytes() + bias_.bytes();
  }
  const auto& of = std::get<lanes>(weight_);
  return of.codes.bytes() + of.scales.bytes() + of.zeros.bytes() + of.order.bytes() +
         of.column_scales.bytes() + bias_.bytes();
}

lane_product device_linear::product_of(const lanes& of, const product_context& with,
                                       int tokens) const {
  lane_product p;
  p.dense_tokens_min = with.dense_tokens_min;
  p.weights = of.view;
  p.bias = bias_.data();
  p.tokens = tokens;
  p.type = p.output_type = with.type;
  p.workspace = with.workspace;
  p.multiprocessors = with.multiprocessors;
  p.batch_invariant = with.batch_invariant;
  return p;
}

gemm_needs device_linear::needs(const product_context& with, int tokens) const {
  if (const auto* table = std::get_if<device_table>(&weight_)) {
    return table_needs(with, *table, tokens, with.type);
  }
  if (const auto* fp8 = std::get_if<fp8_weight>(&weight_)) {
    return fp8_gemm_needs(product_of(*fp8, with, tokens));
  }
  const auto& of = std::get<lanes>(weight_);
  const lane_product p = product_of(of, with, tokens);
  return of.code == lane_code::int4 ? w4a16_needs(p) : w8a16_needs(p);
}

void device_linear::multiply(stream& on, const product_context& with, const void* activations,
                             int tokens, void* output, dtype output_type) const {
  if (const auto* table = std::get_if<device_table>(&weight_)) {
    multiply_table(on, with, *table, bias_.data(), activations, tokens, output, output_type);
    return;
  }
  if (const auto* fp8 = std::get_if<fp8_weight>(&weight_)) {
    multiply_fp8(on, with, *fp8, activations, tokens, output, output_type);
    return;
  }
  const auto& of = std::get<lanes>(weight_);
  lane_product p = product_of(of, with, tokens);
  p.activations = activations;
  p.output = output;
  p.output_type = output_type;
  if (of.code == lane_code::int4) {
    w4a16(on, p);
  } else {
    w8a16(on, of.code == lane_code::e4m3 ? byte_code::e4m3 : byte_code::int8, p);
  }
}

std::vector<int> covering_token_counts(int tokens_max, int dense_tokens_min) {
  // The largest of each count of tiles: few_tokens_gemm takes 8, tiles have 16, 32 or 64 rows.
  std::vector<int> counts{8, 16, dense_tokens_min - 1};
  for (int tokens = 32; tokens < tokens_max; tokens += 32) counts.push_back(tokens);
  std::erase_if(counts, [&](int tokens) { return tokens < 1 || tokens > tokens_max; });
  counts.push_back(tokens_max);
  return counts;
}

void multiply_table(stream& on, const product_context& with, const device_table& table,
                    const void* bias, const void* activations, int tokens, void* output,
                    dtype output_type) {
  dense_product p = product_of(with, table, tokens, output_type);
  p.bias = bias;
  p.activations = activations;
  p.output = output;
  dense_gemm(on, p);
}

gemm_needs table_needs(const product_context& with, const device_table& table, int tokens,
                       dtype output_type) {
  return dense_gemm_needs(product_of(with, table, tokens, output_type));
}

}  // namespace octavo::gpu
