// Entries of the element-wise kernels; those without sums or functions are plain
// loops, whose bits vectorizing cannot change.
#include "cpu/kernels/elementwise.hpp"

namespace octavo::cpu {

void rms_norm(const float* x, const float* weight, std::size_t n, float epsilon, float* out,
              const kernel_table& kernels) {
  kernels.rms_norm(x, weight, n, epsilon, out);
}

void rope(float* head, const float* cosines, const float* sines, std::size_t pairs,
          rope_pairs style) {
  const std::size_t step = style == rope_pairs::halves ? 1 : 2;
  const std::size_t partner = style == rope_pairs::halves ? pairs : 1;
  for (std::size_t i = 0; i < pairs; ++i) {
    float& a = head[i * step];
    float& b = head[i * step + partner];
    const float turned_a = a * cosines[i] - b * sines[i];
    const float turned_b = b * cosines[i] + a * sines[i];
    a = turned_a;
    b = turned_b;
  }
}

void silu_multiply(const float* gate, const float* up, std::size_t n, float* out,
                   const kernel_table& kernels) {
  kernels.silu_multiply(gate, up, n, out);
}

void gelu_multiply(const float* gate, const float* up, std::size_t n, float* out,
                   const kernel_table& kernels) {
  kernels.gelu_multiply(gate, up, n, out);
}

void add(const float* a, const float* b, std::size_t n, float* out, const kernel_table& kernels) {
  kernels.add(a, b, n, out);
}

void scale(const float* x, float factor, std::size_t n, float* out, const kernel_table& kernels) {
  kernels.scale(x, factor, n, out);
}

void soft_cap(const float* x, float cap, std::size_t n, float* out, const kernel_table& kernels) {
  kernels.soft_cap(x, cap, n, out);
}

std::size_t argmax(const float* x, std::size_t n) {
  std::size_t best = n;
  for (std::size_t i = 0; i < n; ++i) {
    const bool is_number = x[i] == x[i];
    if (is_number && (best == n || x[i] > x[best])) best = i;
  }
  return best == n ? 0 : best;
}

}  // namespace octavo::cpu
