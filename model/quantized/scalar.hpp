// Small floats, bit by bit: IEEE half, bfloat16 and the 8-bit formats, to and
// from float. Portable and exact; vector kernels are tested against these.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace octavo::model {

/// IEEE 754 binary16 (1-5-10). Exact, NaN stays NaN.
[[nodiscard]] inline float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16U;
  const std::uint32_t exponent = (half >> 10U) & 0x1FU;
  const std::uint32_t mantissa = half & 0x3FFU;
  if (exponent == 0) {
    // Subnormal: mantissa x 2^-24, which a float holds as a normal number.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23U | mantissa << 13U);
}

/// Rounds to nearest even; beyond the range becomes infinite.
[[nodiscard]] inline std::uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16U) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7FFF'FFFFU;
  if (magnitude > 0x7F80'0000U) return sign | 0x7E00U;
  if (magnitude >= 0x4780'0000U) return sign | 0x7C00U;
  if (magnitude < 0x3880'0000U) {
    // Below 2^-14: adding 1/2 leaves the value in units of 2^-24, rounded, in
    // the low bits of the sum.
    const float sum = std::bit_cast<float>(magnitude) + 0.5F;
    return sign | static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(sum) - 0x3F00'0000U);
  }
  // A carry out of the mantissa raises the exponent, as it should.
  const std::uint32_t odd = (magnitude >> 13U) & 1U;
  const std::uint32_t rounded = magnitude - 0x3800'0000U + 0xFFFU + odd;
  return sign | static_cast<std::uint16_t>(rounded >> 13U);
}

/// bfloat16 (1-8-7): the upper half of a float.
[[nodiscard]] inline float bfloat_to_float(std::uint16_t value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16U);
}

/// Rounds to nearest even; NaN stays NaN.
[[nodiscard]] inline std::uint16_t float_to_bfloat(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

/// 8-bit float of 4 exponent bits (bias 7) without infinities: 0x7F and 0xFF
/// are NaN, the largest value is 448. (OCP 8-bit floating point, E4M3.)
[[nodiscard]] inline float e4m3_to_float(std::uint8_t code) {
  const std::uint32_t exponent = (code >> 3U) & 0xFU;
  const std::uint32_t mantissa = code & 7U;
  if ((code & 0x7FU) == 0x7FU) return std::numeric_limits<float>::quiet_NaN();
  const float magnitude = exponent == 0
                              ? static_cast<float>(mantissa) * 0x1p-9F
                              : std::bit_cast<float>((exponent + 120U) << 23U | mantissa << 20U);
  return (code & 0x80U) != 0 ? -magnitude : magnitude;
}

/// 8-bit float of 5 exponent bits: the upper half of an IEEE half.
[[nodiscard]] inline float e5m2_to_float(std::uint8_t code) {
  return half_to_float(static_cast<std::uint16_t>(code << 8U));
}

/// Reads a little-endian number from any address.
template <class Number>
[[nodiscard]] Number load(const std::byte* at) {
  Number value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace octavo::model
