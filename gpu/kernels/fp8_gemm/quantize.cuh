// Activations to e4m3: see fp8_quantize.
#pragma once

#include "gpu/cuda.hpp"
#include "gpu/kernels/dense_gemm/gemm_output.cuh"
#include "gpu/ptx.h"

namespace octavo::gpu {

inline constexpr int quantize_threads = 256;
inline constexpr float e4m3_max = 448.0F;

/// 8 neighbouring numbers.
template <class T>
struct alignas(16) eight {
  T values[8];
};

/// The largest value of any thread of the block. `words` has a float for each warp.
__device__ inline float block_max(float value, float* words) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffU, value, distance));
  }
  if (threadIdx.x % 32 == 0) words[threadIdx.x / 32] = value;
  __syncthreads();
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) value = fmaxf(value, words[warp]);
  __syncthreads();
  return value;
}

template <class T>
__device__ float largest_magnitude(const eight<T>& from) {
  float largest = 0.0F;
#pragma unroll
  for (int i = 0; i < 8; ++i) largest = fmaxf(largest, fabsf(to_float(from.values[i])));
  return largest;
}

template <class T>
__device__ void store_codes(const eight<T>& from, float scale, unsigned char* to) {
  std::uint32_t words[2] = {0, 0};
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const __nv_fp8_storage_t code =
        __nv_cvt_float_to_fp8(to_float(from.values[i]) / scale, __NV_SATFINITE, __NV_E4M3);
    words[i / 4] |= static_cast<std::uint32_t>(code) << (i % 4 * 8);
  }
  store_global(reinterpret_cast<uint2*>(to), make_uint2(words[0], words[1]));
}

/// Grid: x = tokens. `given` is a scale for all, or null.
template <class T>
__global__ void __launch_bounds__(quantize_threads)
    quantize_tokens(const T* values, unsigned char* codes, float* scales, const float* given,
                    int inputs) {
  OCTAVO_SHARED(shared);
  const std::size_t start = static_cast<std::size_t>(blockIdx.x) * inputs;
  float scale = 0.0F;
  if (given != nullptr) {
    scale = load_global(given);
  } else {
    float largest = 0.0F;
    for (int i = static_cast<int>(threadIdx.x) * 8; i < inputs; i += quantize_threads * 8) {
      largest = fmaxf(
          largest,
          largest_magnitude(load_global(reinterpret_cast<const eight<T>*>(values + start + i))));
    }
    largest = block_max(largest, reinterpret_cast<float*>(shared));
    scale = largest > 0.0F ? largest / e4m3_max : 1.0F;
    if (threadIdx.x == 0) store_global(scales + blockIdx.x, scale);
  }
  for (int i = static_cast<int>(threadIdx.x) * 8; i < inputs; i += quantize_threads * 8) {
    store_codes(load_global(reinterpret_cast<const eight<T>*>(values + start + i)), scale,
                codes + start + i);
  }
}

/// Sixteen lanes make one block of 128 inputs. Grid: x = tokens, y over the blocks of a row.
template <class T>
__global__ void __launch_bounds__(quantize_threads)
    quantize_blocks(const T* values, unsigned char* codes, float* scales, int inputs, int blocks) {
  const int block = static_cast<int>(blockIdx.y * (quantize_threads / 16) + threadIdx.x / 16);
  const int input = block * 128 + static_cast<int>(threadIdx.x) % 16 * 8;
  const bool inside = input < inputs;
  const std::size_t place = static_cast<std::size_t>(blockIdx.x) * inputs + (inside ? input : 0);
  const auto from = load_global(reinterpret_cast<const eight<T>*>(values + place));
  float largest = inside ? largest_magnitude(from) : 0.0F;
#pragma unroll
  for (int distance = 8; distance > 0; distance /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, distance));
  }
  const float scale = largest > 0.0F ? largest / e4m3_max : 1.0F;
  if (!inside) return;
  if (threadIdx.x % 16 == 0) {
    store_global(scales + static_cast<std::size_t>(blockIdx.x) * blocks + block, scale);
  }
  store_codes(from, scale, codes + place);
}

}  // namespace octavo::gpu
