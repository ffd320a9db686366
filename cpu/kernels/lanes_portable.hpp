// The vector operations in plain C++: eight lanes in an array. The order of
// operations is that of the other instruction sets; no fused multiply-add, which
// would be a function call where the processor has none.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "model/quantized/scalar.hpp"

namespace octavo::cpu {
namespace {

struct portable_lanes {
  static constexpr int tiles = 1;
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

  static floats halves(const std::byte* p, std::size_t) {
    return each([&](int i) { return model::half_to_float(model::load<std::uint16_t>(p + 2 * i)); });
  }
  static floats bfloats(const std::byte* p, std::size_t) {
    return each(
        [&](int i) { return model::bfloat_to_float(model::load<std::uint16_t>(p + 2 * i)); });
  }
  static floats singles(const std::byte* p, std::size_t) {
    return each([&](int i) { return model::load<float>(p + 4 * i); });
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
