// What stands between the products: norms, rotary embedding, activations, sums.
// Each call handles one row (or one head), so its bits cannot depend on others.
// Outputs may be their inputs.
#pragma once

#include <cstddef>

#include "cpu/kernels/kernel_table.hpp"

namespace octavo::cpu {

/// out = x / sqrt(mean(x²) + epsilon) * weight. Zhang and Sennrich, "Root Mean
/// Square Layer Normalization" (arXiv 1910.07467).
void rms_norm(const float* x, const float* weight, std::size_t n, float epsilon, float* out,
              const kernel_table& kernels = active_kernels());

/// Which elements of a head turn together.
enum class rope_pairs {
  halves,     ///< i and i + pairs (Hugging Face weights, most GGUF files)
  neighbors,  ///< 2 i and 2 i + 1 (GGUF files of architecture llama)
};

/// Turns the first 2 * pairs elements of a head by the angles whose cosines and
/// sines are given, pairs of each.
void rope(float* head, const float* cosines, const float* sines, std::size_t pairs,
          rope_pairs style);

/// out = gate / (1 + e^-gate) * up.
void silu_multiply(const float* gate, const float* up, std::size_t n, float* out,
                   const kernel_table& kernels = active_kernels());
/// out = gelu(gate) * up, gelu in its form with tanh.
void gelu_multiply(const float* gate, const float* up, std::size_t n, float* out,
                   const kernel_table& kernels = active_kernels());
/// out = a + b: residuals and biases.
void add(const float* a, const float* b, std::size_t n, float* out,
         const kernel_table& kernels = active_kernels());
void scale(const float* x, float factor, std::size_t n, float* out,
           const kernel_table& kernels = active_kernels());
/// out = cap * tanh(x / cap).
void soft_cap(const float* x, float cap, std::size_t n, float* out,
              const kernel_table& kernels = active_kernels());

/// The first of the largest; NaN is never one. 0 where all are NaN.
[[nodiscard]] std::size_t argmax(const float* x, std::size_t n);

}  // namespace octavo::cpu
