// Portable elementary functions and draws; see random.hpp.
#include "traces/random.hpp"

#include <cmath>

namespace octavo::traces {
namespace {

constexpr double ln2 = 0.69314718055994530942;
constexpr double half_pi = 1.57079632679489661923;

template <std::size_t N>
double polynomial(const double (&coefficients)[N], double x) {
  double sum = 0;
  for (const double c : coefficients) sum = sum * x + c;
  return sum;
}

/// Quantile of the standard normal distribution by rational approximation (P. J. Acklam).
double normal_quantile(double p) {
  static constexpr double middle_top[] = {-3.969683028665376e+01, 2.209460984245205e+02,
                                          -2.759285104469687e+02, 1.383577518672690e+02,
                                          -3.066479806614716e+01, 2.506628277459239e+00};
  static constexpr double middle_bottom[] = {-5.447609879822406e+01, 1.615858368580409e+02,
                                             -1.556989798598866e+02, 6.680131188771972e+01,
                                             -1.328068155288572e+01, 1.0};
  static constexpr double tail_top[] = {-7.784894002430293e-03, -3.223964580411365e-01,
                                        -2.400758277161838e+00, -2.549732539343734e+00,
                                        4.374664141464968e+00,  2.938163982698783e+00};
  static constexpr double tail_bottom[] = {7.784695709041462e-03, 3.224671290700398e-01,
                                           2.445134137142996e+00, 3.754408661907416e+00, 1.0};
  constexpr double tail = 0.02425;
  if (p > 1 - tail) return -normal_quantile(1 - p);
  if (p < tail) {
    const double q = std::sqrt(-2 * portable_log(p));
    return polynomial(tail_top, q) / polynomial(tail_bottom, q);
  }
  const double q = p - 0.5;
  return polynomial(middle_top, q * q) * q / polynomial(middle_bottom, q * q);
}

}  // namespace

double portable_log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // exact: m in [1/2, 1)
  if (m < 0.70710678118654752440) {
    m *= 2;
    --exponent;
  }
  // log m = 2 artanh(z), |z| < 0.172: eleven terms reach 1e-18.
  const double z = (m - 1) / (m + 1);
  double sum = 0;
  for (int k = 21; k >= 1; k -= 2) sum = sum * (z * z) + 1.0 / k;
  return exponent * ln2 + 2 * z * sum;
}

double portable_exp(double x) {
  const double n = std::floor(x / ln2 + 0.5);
  const double r = x - n * ln2;  // |r| < 0.347: fourteen terms reach 1e-17
  double sum = 1;
  for (int k = 14; k >= 1; --k) sum = 1 + sum * r / k;
  return std::ldexp(sum, static_cast<int>(n));
}

double portable_cos_turns(double turns) {
  const double quarters = 4 * (turns - std::floor(turns));
  const double nearest = std::floor(quarters + 0.5);
  const double x = (quarters - nearest) * half_pi;  // |x| <= pi/4
  double cosine = 1;
  double sine = 1;
  for (int k = 16; k >= 2; k -= 2) {
    cosine = 1 - cosine * x * x / (k * (k - 1));
    sine = 1 - sine * x * x / (k * (k + 1));
  }
  switch (static_cast<int>(nearest) % 4) {
    case 0:
      return cosine;
    case 1:
      return -x * sine;
    case 2:
      return -cosine;
    default:
      return x * sine;
  }
}

double random_stream::exponential(std::uint64_t index) const {
  return -portable_log(uniform(index));
}

double random_stream::normal(std::uint64_t index) const {
  return normal_quantile(uniform(index));
}

double random_stream::gamma(std::uint64_t index, double shape) const {
  // Below shape 1: a draw of shape + 1 times a power of a uniform one.
  const random_stream draws(bits(index), 0);
  const double boosted = shape < 1 ? shape + 1 : shape;
  const double factor = shape < 1 ? portable_exp(portable_log(draws.uniform(0)) / shape) : 1.0;
  const double d = boosted - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  for (std::uint64_t attempt = 1;; attempt += 2) {
    const double x = draws.normal(attempt);
    const double t = 1 + c * x;
    if (t <= 0) continue;
    const double v = t * t * t;
    const double u = draws.uniform(attempt + 1);
    if (portable_log(u) < 0.5 * x * x + d - d * v + d * portable_log(v)) return d * v * factor;
  }
}

}  // namespace octavo::traces
