// Tests and benchmarks only: weight matrices of any type with random contents,
// and rows of random activations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "model/quantized/scalar.hpp"
#include "model/quantized/weight_matrix.hpp"

namespace octavo::cpu {

/// Types that packed_weights takes.
inline const std::vector<model::element_type>& packable_types() {
  using model::element_type;
  static const std::vector<element_type> types{
      element_type::q4_1, element_type::q4_0, element_type::q8_0, element_type::q5_0,
      element_type::q5_1, element_type::q4_k, element_type::q5_k, element_type::q6_k,
      element_type::f32,  element_type::f16,  element_type::bf16};
  return types;
}

/// Where the half floats of a block lie.
inline std::vector<std::size_t> half_fields(model::element_type type) {
  using model::element_type;
  switch (type) {
    case element_type::q4_0:
    case element_type::q5_0:
    case element_type::q8_0:
      return {0};
    case element_type::q6_k:
      return {208};
    default:
      return {0, 2};
  }
}

struct random_matrix {
  std::vector<std::byte> bytes;
  model::weight_matrix matrix;
};

/// Weights of about +-1: random codes with random scales, or random floats.
inline random_matrix make_random_matrix(model::element_type type, std::int64_t rows,
                                        std::int64_t columns, unsigned seed) {
  using model::element_type;
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> unit(-1.0F, 1.0F);
  random_matrix made;
  made.bytes.resize(static_cast<std::size_t>(rows * model::bytes_of(type, columns)));
  const auto size = static_cast<std::size_t>(model::info(type).block_bytes);
  for (std::size_t at = 0; at < made.bytes.size(); at += size) {
    std::byte* block = made.bytes.data() + at;
    const auto put_half = [&](std::size_t field, float value) {
      const std::uint16_t half = model::float_to_half(value);
      std::memcpy(block + field, &half, 2);
    };
    if (type == element_type::f32) {
      const float value = unit(random);
      std::memcpy(block, &value, 4);
    } else if (type == element_type::f16) {
      put_half(0, unit(random));
    } else if (type == element_type::bf16) {
      const std::uint16_t value = model::float_to_bfloat(unit(random));
      std::memcpy(block, &value, 2);
    } else {
      for (std::size_t i = 0; i < size; ++i) block[i] = static_cast<std::byte>(random());
      const float range = type == element_type::q6_k   ? 2000.0F
                          : type == element_type::q8_0 ? 100.0F
                          : size > 100                 ? 500.0F
                                                       : 10.0F;
      for (const std::size_t field : half_fields(type)) put_half(field, unit(random) / range);
    }
  }
  made.matrix = model::block_matrix{rows, columns, type, made.bytes};
  return made;
}

/// Gaussian activations with a few outliers, as real ones have.
inline std::vector<float> make_random_rows(std::size_t rows, std::size_t columns, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(rows * columns);
  for (float& value : values) {
    value = normal(random);
    if (random() % 100 == 0) value *= 20.0F;
  }
  return values;
}

}  // namespace octavo::cpu
