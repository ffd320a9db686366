// Randomness without state, the same on every machine. A value depends on a
// seed, a stream (one per purpose) and an index alone, so nothing that is drawn
// elsewhere can shift it. Only + - * / sqrt on doubles are used, which IEEE 754
// fixes to the last bit; the standard library's log, exp and distributions differ
// between implementations.
#pragma once

#include <cstdint>

namespace octavo::traces {

/// A 64-bit mixer: the output function of SplitMix64 (Steele et al., OOPSLA'14).
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// Natural logarithm of a positive finite number, to some 1e-14.
[[nodiscard]] double portable_log(double x);
/// e to the power `x` up to 700, to some 1e-13 relative.
[[nodiscard]] double portable_exp(double x);
/// Cosine of a full turn times `turns` (1 is 360 degrees), to some 1e-13.
[[nodiscard]] double portable_cos_turns(double turns);

/// One named stream of a seed. Draws are functions of the index.
class random_stream {
 public:
  constexpr random_stream(std::uint64_t seed, std::uint64_t stream)
      : key_(mix(mix(seed) ^ stream)) {}

  [[nodiscard]] constexpr std::uint64_t bits(std::uint64_t index) const {
    return mix(key_ ^ mix(index));
  }
  /// Uniform in (0, 1), one of 2^52 values; never 0 nor 1.
  [[nodiscard]] constexpr double uniform(std::uint64_t index) const {
    return (static_cast<double>(bits(index) >> 12) + 0.5) * 0x1p-52;
  }
  /// Uniform among `count` values from 0.
  [[nodiscard]] constexpr std::uint64_t below(std::uint64_t index, std::uint64_t count) const {
    return static_cast<std::uint64_t>(uniform(index) * static_cast<double>(count));
  }
  /// Exponential with mean 1.
  [[nodiscard]] double exponential(std::uint64_t index) const;
  /// Standard normal, through the inverse distribution function (error below 1e-8).
  [[nodiscard]] double normal(std::uint64_t index) const;
  /// Gamma with mean `shape` and scale 1 (Marsaglia and Tsang, TOMS 2000).
  [[nodiscard]] double gamma(std::uint64_t index, double shape) const;

 private:
  std::uint64_t key_;
};

}  // namespace octavo::traces
