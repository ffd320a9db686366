// Puts the tensors of one quantized weight together, checking each against the
// others and against the configuration.
#include <algorithm>

#include "core/error.hpp"
#include "model/quantized/dequantize.hpp"
#include "model/quantized/scalar.hpp"
#include "model/quantized/weight_matrix.hpp"

namespace octavo::model {
namespace {

[[noreturn]] void fail(const stored_tensor& tensor, const std::string& why) {
  throw input_error("tensor \"" + tensor.name + "\" " + why);
}

const stored_tensor& need(const stored_tensor* tensor, const stored_tensor& beside,
                          const std::string& what) {
  if (tensor == nullptr) fail(beside, "has no " + what + " beside it");
  return *tensor;
}

void expect_type(const stored_tensor& tensor, element_type type) {
  if (tensor.type == type) return;
  fail(tensor, "has type " + std::string(info(tensor.type).name) + "; " +
                   std::string(info(type).name) + " is expected");
}

void expect_shape(const stored_tensor& tensor, const std::vector<std::int64_t>& shape) {
  if (tensor.shape == shape) return;
  fail(tensor, "has shape " + to_string(tensor.shape) + "; " + to_string(shape) + " is expected");
}

void expect_matrix(const stored_tensor& tensor) {
  const bool sound = tensor.shape.size() == 2 && tensor.shape[0] > 0 && tensor.shape[1] > 0;
  if (!sound) fail(tensor, "has shape " + to_string(tensor.shape) + "; a matrix is expected");
}

scale_array scales_of(const stored_tensor& tensor) {
  if (tensor.type != element_type::f16 && tensor.type != element_type::bf16 &&
      tensor.type != element_type::f32) {
    fail(tensor,
         "has type " + std::string(info(tensor.type).name) + "; scales are F16, BF16 or F32");
  }
  return {tensor.type, tensor.bytes};
}

/// Inputs that share a scale; checks that they divide the inputs.
std::int64_t group_size_of(const quantization_config& config, const stored_tensor& weight,
                           std::int64_t columns) {
  const std::int64_t group = config.group_size < 0 ? columns : config.group_size;
  if (columns % group != 0) {
    fail(weight, "has " + std::to_string(columns) + " inputs, which groups of " +
                     std::to_string(group) + " do not divide");
  }
  return group;
}

/// The group of each input; empty where it is plainly k / group.
std::span<const std::byte> groups_of(const stored_tensor* tensor, std::int64_t columns,
                                     std::int64_t group) {
  if (tensor == nullptr) return {};
  expect_type(*tensor, element_type::i32);
  expect_shape(*tensor, {columns});
  const std::int64_t count = (columns + group - 1) / group;
  bool all_zero = true;
  for (std::int64_t k = 0; k < columns; ++k) {
    const auto g = load<std::int32_t>(tensor->bytes.data() + 4 * k);
    if (g < 0 || g >= count) {
      fail(*tensor, "puts input " + std::to_string(k) + " into group " + std::to_string(g) +
                        "; there are " + std::to_string(count));
    }
    all_zero = all_zero && g == 0;
  }
  // Some writers leave the tensor at zero where inputs keep their order.
  if (all_zero) return {};
  return tensor->bytes;
}

}  // namespace

weight_matrix make_block_matrix(const stored_tensor& weight) {
  expect_matrix(weight);
  if (!is_readable(weight.type)) {
    fail(weight, "has type " + std::string(info(weight.type).name) +
                     ", which cannot be computed with; F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, "
                     "Q5_1, Q4_K, Q5_K and Q6_K can");
  }
  return block_matrix{weight.shape[0], weight.shape[1], weight.type, weight.bytes};
}

weight_matrix make_awq_matrix(const quantization_config& config, const weight_parts& parts) {
  const stored_tensor& weight = *parts.weight;
  expect_type(weight, element_type::i32);
  expect_matrix(weight);
  awq_matrix m;
  m.columns = weight.shape[0];
  m.rows = weight.shape[1] * 8;
  m.group = group_size_of(config, weight, m.columns);
  m.codes = weight.bytes;
  const stored_tensor& scales = need(parts.scales, weight, "scales");
  expect_shape(scales, {m.columns / m.group, m.rows});
  m.scales = scales_of(scales);
  if (!config.symmetric || parts.zeros != nullptr) {
    const stored_tensor& zeros = need(parts.zeros, weight, "qzeros");
    expect_type(zeros, element_type::i32);
    expect_shape(zeros, {m.columns / m.group, m.rows / 8});
    m.zeros = zeros.bytes;
  }
  return m;
}

weight_matrix make_gptq_matrix(const quantization_config& config, const weight_parts& parts) {
  const stored_tensor& weight = *parts.weight;
  expect_type(weight, element_type::i32);
  expect_matrix(weight);
  gptq_matrix m;
  m.bits = config.bits;
  m.columns = weight.shape[0] * (32 / config.bits);
  m.rows = weight.shape[1];
  if (m.rows % (32 / config.bits) != 0) {
    fail(weight, "has " + std::to_string(m.rows) +
                     " outputs; their zero points need a multiple of " +
                     std::to_string(32 / config.bits));
  }
  m.group = group_size_of(config, weight, m.columns);
  m.zero_offset = config.zero_offset;
  m.codes = weight.bytes;
  const std::int64_t groups = m.columns / m.group;
  const stored_tensor& scales = need(parts.scales, weight, "scales");
  expect_shape(scales, {groups, m.rows});
  m.scales = scales_of(scales);
  const stored_tensor& zeros = need(parts.zeros, weight, "qzeros");
  expect_type(zeros, element_type::i32);
  expect_shape(zeros, {groups, m.rows * config.bits / 32});
  m.zeros = zeros.bytes;
  m.groups = groups_of(parts.groups, m.columns, m.group);
  return m;
}

weight_matrix make_packed_matrix(const quantization_config& config, const weight_parts& parts) {
  const stored_tensor& weight = *parts.weight;
  expect_type(weight, element_type::i32);
  expect_matrix(weight);
  const stored_tensor& shape = need(parts.shape, weight, "weight_shape");
  expect_type(shape, element_type::i64);
  expect_shape(shape, {2});
  packed_matrix m;
  m.bits = config.bits;
  m.rows = load<std::int64_t>(shape.bytes.data());
  m.columns = load<std::int64_t>(shape.bytes.data() + 8);
  const std::int64_t per_word = 32 / config.bits;
  const bool fits = m.rows == weight.shape[0] && m.columns > 0 &&
                    m.columns <= weight.shape[1] * per_word &&
                    (m.columns + per_word - 1) / per_word == weight.shape[1];
  if (!fits) {
    fail(shape, "says [" + std::to_string(m.rows) + ", " + std::to_string(m.columns) +
                    "], which does not fit the packed shape " + to_string(weight.shape));
  }
  const bool grouped = config.scales == scale_layout::group;
  m.group = grouped ? group_size_of(config, weight, m.columns) : m.columns;
  m.codes = weight.bytes;
  const std::int64_t groups = m.columns / m.group;
  const stored_tensor& scales = need(parts.scales, weight, "weight_scale");
  expect_shape(scales, {m.rows, groups});
  m.scales = scales_of(scales);
  if (!config.symmetric) {
    const stored_tensor& zeros = need(parts.zeros, weight, "weight_zero_point");
    expect_type(zeros, element_type::i32);
    expect_shape(zeros, {(m.rows + per_word - 1) / per_word, groups});
    m.zeros = zeros.bytes;
  }
  m.groups = groups_of(parts.groups, m.columns, m.group);
  return m;
}

weight_matrix make_scaled_matrix(const quantization_config& config, const weight_parts& parts) {
  const stored_tensor& weight = *parts.weight;
  if (weight.type != element_type::i8 && weight.type != element_type::f8_e4m3) {
    fail(weight, "has type " + std::string(info(weight.type).name) + "; I8 or F8_E4M3 is expected");
  }
  expect_matrix(weight);
  if (parts.zeros != nullptr) fail(*parts.zeros, "gives zero points, which one-byte weights lack");
  const stored_tensor& scales = need(parts.scales, weight, "scale");
  scaled_matrix m{weight.shape[0],  weight.shape[1], weight.type, weight.bytes, 0, 0,
                  scales_of(scales)};
  m.block_rows = config.scales == scale_layout::block ? config.block_rows : m.rows;
  m.block_columns = config.scales == scale_layout::block ? config.block_columns : m.columns;
  // A scale per output is known by its shape: HF FP8 files do not announce it.
  if (config.scales != scale_layout::block && scales.elements() == m.rows) m.block_rows = 1;
  const std::int64_t down = (m.rows + m.block_rows - 1) / m.block_rows;
  const std::int64_t across = (m.columns + m.block_columns - 1) / m.block_columns;
  if (config.scales == scale_layout::block) expect_shape(scales, {down, across});
  if (scales.elements() != down * across) {
    fail(scales, "has shape " + to_string(scales.shape) + "; one scale for the tensor or one for " +
                     "each of " + std::to_string(m.rows) + " outputs is expected");
  }
  return m;
}

}  // namespace octavo::model
