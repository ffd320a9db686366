// Fragments of tensor-core products as this project's matrix kernels use them:
// pairs of 16-bit numbers in a register, and tiles loaded from shared memory.
#pragma once

#include <cstdint>

#include "gpu/cuda.hpp"
#include "gpu/ptx.h"

namespace octavo::gpu {

/// Two numbers of a 16-bit type in one register.
template <class T>
struct packed_pair;

template <>
struct packed_pair<__half> {
  using type = __half2;
  __device__ static type repeat(__half value) { return __half2half2(value); }
};

template <>
struct packed_pair<__nv_bfloat16> {
  using type = __nv_bfloat162;
  __device__ static type repeat(__nv_bfloat16 value) { return __bfloat162bfloat162(value); }
};

template <class T>
using pair_of = typename packed_pair<T>::type;

/// The lower or upper half of a register as a pair of equal numbers.
__device__ inline std::uint32_t repeat_low(std::uint32_t bits) {
  return (bits & 0xffffU) | bits << 16;
}
__device__ inline std::uint32_t repeat_high(std::uint32_t bits) {
  return (bits & 0xffff0000U) | bits >> 16;
}

/// Where lane `lane` points ldmatrix for a 16 x 32-byte tile that becomes the A
/// operand: registers hold rows 0-7 and 8-15 of the left half, then of the right.
__device__ inline const unsigned char* left_operand(const unsigned char* tile, int row_bytes,
                                                    int lane) {
  return tile + lane % 16 * row_bytes + lane / 16 * 16;
}

/// The same for a tile of 16 output columns that becomes two B operands:
/// registers 0, 1 of columns 0-7 and 2, 3 of columns 8-15.
__device__ inline const unsigned char* right_operand(const unsigned char* tile, int row_bytes,
                                                     int lane) {
  return tile + (lane / 16 * 8 + lane % 8) * row_bytes + lane / 8 % 2 * 16;
}

}  // namespace octavo::gpu
