// The vector operations in plain C++: eight lanes in an array. The order of
// operations is that of the other instruction sets; no fused multiply-add, which
// would be a function call where the processor has none.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "model/quantized/scalar.hpp"

namespace octavo::cpu {
namespace {

struct portable_lanes {
  static constexpr int tiles = 1;
  static constexpr int rows_max = 2;
  static constexpr int width = 8;
  struct floats {
    float at[8];
  };
  struct bytes {
    std::uint8_t at[32];
  };
  struct inputs {
    std::int8_t at[4];
  };
  struct sum {
    std::int32_t at[8];
  };
  using wide_sum = sum;

  template <class Function>
  static floats each(Function&& f) {
    floats out;
    for (int i = 0; i < 8; ++i) out.at[i] = f(i);
    return out;
  }
  static floats set1(float v) {
    return each([&](int) { return v; });
  }
  static floats load_floats(const float* p) {
    return each([&](int i) { return p[i]; });
  }
  static floats add(const floats& a, const floats& b) {
    return each([&](int i) { return a.at[i] + b.at[i]; });
  }
  static floats sub(const floats& a, const floats& b) {
    return each([&](int i) { return a.at[i] - b.at[i]; });
  }
  static floats mul(const floats& a, const floats& b) {
    return each([&](int i) { return a.at[i] * b.at[i]; });
  }
  static floats div(const floats& a, const floats& b) {
    return each([&](int i) { return a.at[i] / b.at[i]; });
  }
  static floats fma(const floats& a, const floats& b, const floats& c) {
    return each([&](int i) { return a.at[i] * b.at[i] + c.at[i]; });
  }
  static floats negated(const floats& a) {
    return each([&](int i) { return -a.at[i]; });
  }

  // Where one operand is NaN, the second is taken.
  static floats min(const floats& a, const floats& b) {
    return each([&](int i) { return a.at[i] < b.at[i] ? a.at[i] : b.at[i]; });
  }
  static floats max(const floats& a, const floats& b) {
    return each([&](int i) { return a.at[i] > b.at[i] ? a.at[i] : b.at[i]; });
  }
  static float first(const floats& v) { return v.at[0]; }
  static floats folded_halves(const floats& v) {
    return each([&](int i) { return v.at[i ^ 4]; });
  }
  static floats folded_quarters(const floats& v) {
    return each([&](int i) { return v.at[i ^ 2]; });
  }
  static floats folded_eighths(const floats& v) {
    return each([&](int i) { return v.at[i ^ 1]; });
  }
  static floats rounded(const floats& v) {
    // Adding 1.5 x 2^23 leaves no bits for a fraction.
    return each([&](int i) { return (v.at[i] + 0x1.8p23F) - 0x1.8p23F; });
  }
  /// 2^n of whole numbers -126 .. 127.
  static floats power_of_two(const floats& n) {
    return each([&](int i) {
      // NaN has no integer; the caller multiplies by it in any case.
      const int whole = n.at[i] == n.at[i] ? static_cast<int>(n.at[i]) : 0;
      return std::bit_cast<float>(static_cast<std::uint32_t>(whole + 127) << 23U);
    });
  }
  /// 0 where a < b, else v; NaN passes.
  static floats zero_where_less(const floats& a, const floats& b, const floats& v) {
    return each([&](int i) { return a.at[i] < b.at[i] ? 0.0F : v.at[i]; });
  }
  /// v in the lanes begin .. end - 1, else -infinity; positions relative to lane 0.
  static floats only_lanes(const floats& v, int begin, int end) {
    return each([&](int i) { return i >= begin && i < end ? v.at[i] : -INFINITY; });
  }

  static void store_halves(std::byte* p, const floats& v) {
    for (int i = 0; i < 8; ++i) {
      const std::uint16_t half = model::float_to_half(v.at[i]);
      std::memcpy(p + 2 * i, &half, 2);
    }
  }
  static floats halves(const std::byte* p, std::size_t = 0) {
    return each([&](int i) { return model::half_to_float(model::load<std::uint16_t>(p + 2 * i)); });
  }
  static floats bfloats(const std::byte* p, std::size_t) {
    return each(
        [&](int i) { return model::bfloat_to_float(model::load<std::uint16_t>(p + 2 * i)); });
  }
  static floats singles(const std::byte* p, std::size_t) {
    return each([&](int i) { return model::load<float>(p + 4 * i); });
  }
  static floats small_floats(const std::byte* p, std::size_t) {
    return each([&](int i) { return model::e4m3_to_float(model::load<std::uint8_t>(p + i)); });
  }
  static floats unsigned_bytes(const std::byte* p, std::size_t) {
    return each([&](int i) { return static_cast<float>(model::load<std::uint8_t>(p + i)); });
  }
  static floats signed_bytes(const std::byte* p, std::size_t) {
    return each([&](int i) { return static_cast<float>(model::load<std::int8_t>(p + i)); });
  }
  static void store(float* y, const floats& v, std::size_t count) {
    for (std::size_t i = 0; i < 8 && i < count; ++i) y[i] = v.at[i];
  }

  static bytes load(const std::byte* p, std::size_t) {
    bytes out;
    std::memcpy(out.at, p, 32);
    return out;
  }
  template <class Function>
  static bytes each_byte(Function&& f) {
    bytes out;
    for (int i = 0; i < 32; ++i) out.at[i] = static_cast<std::uint8_t>(f(i));
    return out;
  }
  static bytes low_nibbles(const bytes& v) {
    return each_byte([&](int i) { return v.at[i] & 15; });
  }
  static bytes high_nibbles(const bytes& v) {
    return each_byte([&](int i) { return v.at[i] >> 4; });
  }
  static bytes either(const bytes& a, const bytes& b) {
    return each_byte([&](int i) { return a.at[i] | b.at[i]; });
  }
  template <int From, int Count, int To>
  static bytes move_bits(const bytes& v) {
    return each_byte([&](int i) { return ((v.at[i] >> From) & ((1 << Count) - 1)) << To; });
  }
  static inputs four(const std::int8_t* x) {
    inputs out;
    std::memcpy(out.at, x, 4);
    return out;
  }

  static sum sum_of(int value) {
    sum out;
    for (int& lane : out.at) lane = value;
    return out;
  }
  template <int Zero>
  static sum start_half(const std::int16_t* pairs) {
    return sum_of(Zero * (pairs[0] + pairs[1]));
  }
  template <int Zero>
  static sum start(const std::int16_t* pairs) {
    return sum_of(Zero * (pairs[0] + pairs[1] + pairs[2] + pairs[3]));
  }
  template <int Zero>
  static sum start_wide(const std::int16_t* pairs) {
    return start<Zero>(pairs);
  }
  static const bytes& widen(const bytes& c) { return c; }
  static sum step(sum s, const bytes& c, inputs x) {
    for (int r = 0; r < 8; ++r) {
      for (int e = 0; e < 4; ++e) s.at[r] += c.at[4 * r + e] * x.at[e];
    }
    return s;
  }
  static sum step_wide(const sum& s, const bytes& c, inputs x) { return step(s, c, x); }
  static floats total(const sum& s) {
    return each([&](int i) { return static_cast<float>(s.at[i]); });
  }
  static floats total_wide(const sum& s) { return total(s); }
};

inline void portable_quantize_block(const float* values, std::int8_t* codes, float* scale,
                                    float* sum, std::int16_t* pairs) {
  float amax = 0.0F;
  bool finite = true;
  for (int i = 0; i < 32; ++i) {
    finite = finite && std::isfinite(values[i]);
    amax = std::fabs(values[i]) > amax ? std::fabs(values[i]) : amax;
  }
  const bool tiny = amax < 0x1p-100F;
  const float inverse = finite && !tiny ? 127.0F / amax : 0.0F;
  int lanes[4] = {};
  for (int i = 0; i < 32; ++i) {
    const float scaled = finite ? values[i] * inverse : 0.0F;
    const int code = static_cast<int>(std::nearbyint(scaled));
    codes[i] = static_cast<std::int8_t>(code);
    lanes[i / 16 * 2 + i % 4 / 2] -= code;
  }
  for (int i = 0; i < 4; ++i) pairs[i] = static_cast<std::int16_t>(lanes[i]);
  *scale = finite ? (tiny ? 0.0F : amax / 127.0F) : std::nanf("");
  *sum = *scale * static_cast<float>(-(pairs[0] + pairs[1] + pairs[2] + pairs[3]));
}

}  // namespace
}  // namespace octavo::cpu
