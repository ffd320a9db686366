// Tests only: weights in every stored form with random contents, and their way to
// the device.
#pragma once

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "gpu/kernels/dense_gemm/gemm_fixture.hpp"
#include "gpu/kernels/w4a16/lane_product.hpp"
#include "gpu/kernels/w4a16/repack.hpp"
#include "model/quantized/weight_matrix.hpp"

namespace octavo::gpu {

/// Random storage for one weight.
struct stored_sample {
  std::vector<std::byte> codes;
  std::vector<std::byte> zeros;
  std::vector<std::byte> scales;
  std::vector<std::byte> groups;
  model::weight_matrix matrix;
  std::mt19937 random;

  explicit stored_sample(unsigned seed) : random(seed) {}
  stored_sample(stored_sample&&) = delete;

  std::vector<std::byte> random_bytes(std::int64_t n) {
    std::vector<std::byte> out(static_cast<std::size_t>(n));
    for (auto& b : out) b = static_cast<std::byte>(random());
    return out;
  }
  /// Scales of 5 significant bits, which fp16 and bf16 both hold.
  model::scale_array random_scales(std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) {
      const auto bits = model::float_to_half(static_cast<float>(16 + random() % 16) * 0x1p-12F);
      const auto* raw = reinterpret_cast<const std::byte*>(&bits);
      scales.insert(scales.end(), raw, raw + 2);
    }
    return {model::element_type::f16, scales};
  }
  /// Every input to a random group, all groups of one size.
  std::span<const std::byte> shuffled_groups(std::int64_t columns, std::int64_t group) {
    std::vector<std::int32_t> of(static_cast<std::size_t>(columns));
    for (std::int64_t k = 0; k < columns; ++k) {
      of[static_cast<std::size_t>(k)] = static_cast<std::int32_t>(k / group);
    }
    std::shuffle(of.begin(), of.end(), random);
    groups.resize(of.size() * 4);
    std::memcpy(groups.data(), of.data(), groups.size());
    return groups;
  }

  void make_awq(std::int64_t rows, std::int64_t columns, std::int64_t group) {
    codes = random_bytes(columns * rows / 2);
    zeros = random_bytes(columns / group * rows / 2);
    matrix = model::awq_matrix{rows,  columns, group,
                               codes, zeros,   random_scales(columns / group * rows)};
  }
  void make_gptq(int bits, std::int64_t rows, std::int64_t columns, std::int64_t group,
                 int zero_offset, bool reordered) {
    codes = random_bytes(columns * rows * bits / 8);
    zeros = random_bytes(columns / group * rows * bits / 8);
    model::gptq_matrix m{rows,        columns, bits,  group,
                         zero_offset, codes,   zeros, random_scales(columns / group * rows),
                         {}};
    if (reordered) m.groups = shuffled_groups(columns, group);
    matrix = m;
  }
  void make_packed(int bits, std::int64_t rows, std::int64_t columns, std::int64_t group,
                   bool with_zeros) {
    const std::int64_t per_word = 32 / bits;
    const std::int64_t count = (columns + group - 1) / group;
    codes = random_bytes(rows * ((columns + per_word - 1) / per_word) * 4);
    zeros = random_bytes((rows + per_word - 1) / per_word * count * 4);
    model::packed_matrix m{rows, columns, bits, group, codes, {}, random_scales(rows * count), {}};
    if (with_zeros) m.zeros = zeros;
    matrix = m;
  }
  /// No NaN among 8-bit floats.
  void make_bytes(model::element_type type, std::int64_t rows, std::int64_t columns,
                  std::int64_t block_rows, std::int64_t block_columns) {
    codes = random_bytes(rows * columns);
    for (auto& code : codes) {
      if (type == model::element_type::f8_e4m3 && (code & std::byte{0x7F}) == std::byte{0x7F}) {
        code = std::byte{0x01};
      }
    }
    const std::int64_t count =
        ((rows + block_rows - 1) / block_rows) * ((columns + block_columns - 1) / block_columns);
    matrix = model::scaled_matrix{
        rows, columns, type, codes, block_rows, block_columns, random_scales(count)};
  }

  [[nodiscard]] std::vector<float> dequantized() const {
    const std::int64_t rows = model::rows_of(matrix);
    const std::int64_t columns = model::columns_of(matrix);
    std::vector<float> all(static_cast<std::size_t>(rows * columns));
    for (std::int64_t n = 0; n < rows; ++n) {
      model::dequantize_row(matrix, n, std::span(all).subspan(n * columns, columns));
    }
    return all;
  }
};

/// A repacked weight on the device.
struct device_weights {
  lane_image image;
  device_array<std::byte> codes;
  device_array<std::uint16_t> scales;
  device_array<std::uint8_t> zeros;
  device_array<std::int32_t> order;
  device_array<float> column_scales;

  device_weights(stream& s, const model::weight_matrix& matrix, dtype type)
      : image(repack(matrix, type, "w")),
        codes(on_device(s, image.codes)),
        scales(on_device(s, image.scales)),
        zeros(on_device(s, image.zeros)),
        order(on_device(s, image.order)),
        column_scales(on_device(s, image.column_scales)) {}

  lane_weights view() {
    lane_weights w;
    w.codes = codes.data();
    w.scales = scales.data();
    w.zeros = zeros.data();
    w.order = order.data();
    w.column_scales = column_scales.data();
    w.column_scale_stride = image.column_scales.size() > 1 ? 1 : 0;
    w.outputs = static_cast<int>(image.outputs);
    w.inputs = static_cast<int>(image.inputs);
    w.source_inputs = static_cast<int>(image.source_inputs);
    w.group = static_cast<int>(image.group);
    return w;
  }
};

/// A product on the device and what it should be, sums in double of weights as they
/// are after rounding to the type.
struct lane_case {
  using needs_function = gemm_needs (*)(const lane_product&);
  using launch_function = std::function<void(stream&, const lane_product&)>;

  stream s;
  device_weights weights;
  std::vector<std::uint16_t> activations;
  device_array<std::uint16_t> device_activations;
  device_array<float> output;
  lane_product product;

  lane_case(const model::weight_matrix& matrix, dtype type, int tokens)
      : weights(s, matrix, type),
        activations(
            random_numbers(type, static_cast<std::size_t>(tokens * model::columns_of(matrix)), 5)),
        device_activations(on_device(s, activations)),
        output(static_cast<std::size_t>(tokens * model::rows_of(matrix))) {
    product.activations = device_activations.data();
    product.weights = weights.view();
    product.output = output.data();
    product.output_type = dtype::float32;
    product.tokens = tokens;
    product.type = type;
    product.multiprocessors = 4;
    // Queued copies must not outlive the arrays where a test throws.
    s.synchronize();
  }

  std::vector<float> run(needs_function needs, const launch_function& launch) {
    test_workspace workspace(s, needs(product));
    product.workspace = workspace.view();
    launch(s, product);
    std::vector<float> got(output.size());
    output.download(s, got);
    s.synchronize();
    return got;
  }

  /// As a share of the terms' magnitudes. Where results are scaled in float, weights
  /// are not rounded, but where they are written out.
  double error(const stored_sample& stored, const std::vector<float>& got) const {
    const std::vector<float> all = stored.dequantized();
    const bool exact = !weights.image.column_scales.empty() && product.path != lane_path::dense;
    const int inputs = product.weights.source_inputs;
    expected_product e;
    e.tokens = product.tokens;
    e.outputs = product.weights.outputs;
    e.inputs = inputs;
    e.activation = [&](int m, int k) {
      return double{number_of(product.type, activations[static_cast<std::size_t>(m) * inputs + k])};
    };
    e.weight = [&](int n, int k) {
      const float w = all[static_cast<std::size_t>(n) * inputs + k];
      return exact ? double{w} : rounded(product.type, w);
    };
    return worst_error(e, got);
  }
};

}  // namespace octavo::gpu
